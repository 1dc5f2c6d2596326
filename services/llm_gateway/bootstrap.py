"""Puts the llm gateway together, for tests, too."""

from collections.abc import Iterable
from dataclasses import dataclass

import asyncpg

from loci.llm.v1 import (
    chat_service_pb2,
    forward_service_pb2,
    model_service_pb2,
    provider_service_pb2,
    usage_service_pb2,
)
from loci.llm.v1.chat_service_pb2_grpc import add_ChatServiceServicer_to_server
from loci.llm.v1.forward_service_pb2_grpc import add_ForwardServiceServicer_to_server
from loci.llm.v1.model_service_pb2_grpc import add_ModelServiceServicer_to_server
from loci.llm.v1.provider_service_pb2_grpc import add_ProviderServiceServicer_to_server
from loci.llm.v1.usage_service_pb2_grpc import add_UsageServiceServicer_to_server
from services.common.context import Verifier
from services.common.encryption import Sealer
from services.common.server import Server, make_server
from services.llm_gateway.budgets.service import Ledger
from services.llm_gateway.budgets.store import PostgresBudgets
from services.llm_gateway.calls.endpoints import Endpoints
from services.llm_gateway.calls.retry import RetryPolicy
from services.llm_gateway.calls.service import Calls, Policy
from services.llm_gateway.calls.servicer import ChatServicer
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.forwards.service import Forwards
from services.llm_gateway.forwards.servicer import ForwardServicer
from services.llm_gateway.models.service import Catalogue
from services.llm_gateway.models.servicer import ModelServicer
from services.llm_gateway.providers.credentials import Vault
from services.llm_gateway.providers.entries import ProviderEntryFactory
from services.llm_gateway.providers.registry import ProviderRegistry
from services.llm_gateway.providers.service import ProviderService
from services.llm_gateway.providers.servicer import ProviderServicer
from services.llm_gateway.providers.store import PostgresProviderStore
from services.llm_gateway.providers.tenant_cache import TenantProviderCache
from services.llm_gateway.settings import CallSettings
from services.llm_gateway.usage.log import UsageLog
from services.llm_gateway.usage.retention import Retention
from services.llm_gateway.usage.servicer import UsageServicer
from services.llm_gateway.usage.store import PostgresUsageReports, PostgresUsageStore

AUDIENCE = "llm_gateway"


@dataclass(frozen=True, slots=True)
class Built:
    """The server, bound and not started, and what runs and stops beside it."""

    server: Server
    usage: UsageLog
    providers: ProviderRegistry
    tenants: TenantProviderCache
    ledger: Ledger
    retention: Retention
    forwards: Forwards


def build(
    *,
    listen: str,
    verifier: Verifier,
    pool: asyncpg.Pool,
    sealer: Sealer,
    configs: Iterable[ProviderConfig],
    settings: CallSettings,
) -> Built:
    """Raises SettingsError where `listen` cannot be used."""
    reports, budgets, provider_store = PostgresUsageReports(pool), PostgresBudgets(pool), PostgresProviderStore(pool)
    providers, usage = ProviderRegistry(settings.recordings), UsageLog(PostgresUsageStore(pool))
    vault, allow_private = Vault(sealer), settings.allow_private
    maker = ProviderEntryFactory(
        providers, provider_store, vault, patience=settings.patience, allow_private=allow_private
    )
    operators, tenants = (
        maker.operators(configs, settings.overrides),
        TenantProviderCache(provider_store, maker, providers),
    )
    catalogue = Catalogue(providers, operators, tenants)
    admin = ProviderService(
        tenants, operators, provider_store, vault, maker, providers, allow_private=settings.allow_private
    )
    limits = settings.limits
    ledger = Ledger(budgets, usage, limits.budgets)
    endpoints = Endpoints(concurrency=limits.concurrency, queue=limits.queue)
    policy = Policy(RetryPolicy(retries=settings.retries), settings.flush_seconds, limits.fallbacks)
    calls = Calls(catalogue, providers, endpoints, ledger, policy)
    forwards = Forwards(catalogue, endpoints, ledger, settings.recordings)
    server = make_server(
        listen,
        servicers=[
            (add_ChatServiceServicer_to_server, ChatServicer(calls)),
            (add_ForwardServiceServicer_to_server, ForwardServicer(forwards)),
            (add_ModelServiceServicer_to_server, ModelServicer(catalogue, calls)),
            (add_ProviderServiceServicer_to_server, ProviderServicer(admin)),
            (add_UsageServiceServicer_to_server, UsageServicer(usage, reports, ledger)),
        ],
        service_names=[
            chat_service_pb2.DESCRIPTOR.services_by_name["ChatService"].full_name,
            forward_service_pb2.DESCRIPTOR.services_by_name["ForwardService"].full_name,
            model_service_pb2.DESCRIPTOR.services_by_name["ModelService"].full_name,
            provider_service_pb2.DESCRIPTOR.services_by_name["ProviderService"].full_name,
            usage_service_pb2.DESCRIPTOR.services_by_name["UsageService"].full_name,
        ],
        audience=AUDIENCE,
        verifier=verifier,
    )
    return Built(server, usage, providers, tenants, ledger, Retention(reports, limits.usage_days), forwards)
