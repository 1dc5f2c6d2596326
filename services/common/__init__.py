"""The parts that processes share: settings, ids, errors, call contexts, servers, channels, telemetry, database.

It names no agent, block, tool or model. Modules that cost memory stand alone: `database` imports asyncpg,
`engine` SQLAlchemy, and `migrate` Alembic only when there is something to migrate.
"""
