# The base of the sandbox image where you name none: the official images of Python and Node in one.
ARG PYTHON=python:3.13-slim
ARG NODE=node:22-slim
FROM ${NODE} AS node
FROM ${PYTHON}
COPY --from=node /usr/local/bin/node /usr/local/bin/node
COPY --from=node /usr/local/lib/node_modules/npm /usr/local/lib/node_modules/npm
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \
 && ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx
