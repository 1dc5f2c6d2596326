"""See services.common.migrations.env."""

from services.common.migrations.env import run_migrations

run_migrations()
