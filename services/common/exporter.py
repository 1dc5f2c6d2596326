"""The OpenTelemetry SDK with an OTLP exporter. Imported only where an endpoint is set."""

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


def provider_for(service_name: str, endpoint: str) -> TracerProvider:
    """Returns a provider that sends spans of `loci-<service_name>` to `<endpoint>/v1/traces` (OTLP/HTTP, protobuf).

    Sampler, headers and batch delays follow the SDK's own OTEL_* variables.
    """
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: f"loci-{service_name}"}))
    exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider
