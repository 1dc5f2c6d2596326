// The tool's way out: all of it goes to the proxy that HTTP_PROXY names, which Node does not read by itself.
// CommonJS, since programs of MCP servers have it loaded by `--require`, which leaves their own loading as it is.

const { readFileSync } = require("node:fs");
const http = require("node:http");
const https = require("node:https");
const tls = require("node:tls");

// Places of this machine ("localhost:8000") that the proxy may be asked for; all others are the sandbox's own.
let outside = new Set();

/** From here on `fetch`, `http` and `https` use the environment's proxy and trust its authority. Nothing without one. */
exports.useProxy = function useProxy(environment) {
  const address = environment.HTTPS_PROXY ?? environment.https_proxy ?? environment.HTTP_PROXY ?? environment.http_proxy;
  if (!address) return;
  outside = new Set((environment.loci_proxied_local ?? "").split(","));
  const proxy = new URL(address);
  http.globalAgent = new ForwardAgent(proxy);
  https.globalAgent = new TunnelAgent(proxy);
  if (environment.NODE_EXTRA_CA_CERTS) trust(environment.NODE_EXTRA_CA_CERTS);
  proxyFetch(address);
};

/** The same for a program that may have an undici of its own, which finds the dispatcher that is there. */
exports.useProxyInProgram = function useProxyInProgram(environment) {
  exports.useProxy(environment);
  const address = environment.HTTPS_PROXY;
  if (address) dispatch(address);
};

// undici is loaded when it is first needed: that takes longer than most calls.
function proxyFetch(address) {
  for (const name of ["fetch", "WebSocket", "EventSource"]) {
    const original = globalThis[name];
    if (!original) continue;
    const restore = (value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
    Object.defineProperty(globalThis, name, {
      configurable: true,
      get() {
        dispatch(address);
        restore(original);
        return original;
      },
      set: restore,
    });
  }
}

let dispatching = false;

function dispatch(address) {
  if (dispatching) return;
  dispatching = true;
  const { EnvHttpProxyAgent, setGlobalDispatcher } = require("undici");
  const options = { httpProxy: address, httpsProxy: address, noProxy: process.env.NO_PROXY ?? "", proxyTunnel: false };
  setGlobalDispatcher(new EnvHttpProxyAgent(options));
}

// Plain HTTP: the whole address goes to the proxy.
class ForwardAgent extends http.Agent {
  constructor(proxy) {
    super({ keepAlive: true });
    this.proxy = proxy;
  }

  addRequest(request, options, ...rest) {
    const { hostname, port } = this.proxy;
    if (isLocal(options, 80) || options.socketPath) return super.addRequest(request, options, ...rest);
    const target = new URL(request.path, `http://${options.host}:${options.port ?? 80}`);
    request.path = target.href;
    return super.addRequest(request, { ...options, host: hostname, hostname, port }, ...rest);
  }
}

// HTTPS: a tunnel through the proxy, with TLS in it.
class TunnelAgent extends https.Agent {
  constructor(proxy) {
    super({ keepAlive: true });
    this.proxy = proxy;
  }

  createConnection(options, done) {
    if (isLocal(options, 443)) return super.createConnection(options, done);
    const place = `${options.host}:${options.port ?? 443}`;
    const { hostname, port } = this.proxy;
    const agent = new http.Agent(); // `false` would make one more of ours
    const asked = http.request({ hostname, port, method: "CONNECT", path: place, agent, headers: { host: place } });
    asked.once("connect", (answer, socket) => {
      if (answer.statusCode === 200) {
        done(null, tls.connect({ ...options, socket, servername: options.servername || options.host }));
        return;
      }
      socket.destroy();
      done(new Error(`${place} cannot be reached: ${answer.statusCode} ${answer.statusMessage}`));
    });
    asked.once("error", done);
    asked.end();
  }
}

function isLocal({ host, port }, usualPort) {
  const local = host === "localhost" || host === "::1" || /^127\./.test(host ?? "");
  return local && !outside.has(`${host}:${port ?? usualPort}`);
}

// Node reads NODE_EXTRA_CA_CERTS when it starts, which was before this call's environment was known.
function trust(path) {
  const known = new Set(tls.rootCertificates.map(bare));
  const pem = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
  const added = (readFileSync(path, "utf8").match(pem) ?? []).filter((text) => !known.has(bare(text)));
  const create = tls.createSecureContext;
  tls.createSecureContext = (options) => {
    const made = create(options);
    for (const text of added) made.context.addCACert(text);
    return made;
  };
}

function bare(text) {
  return text.replaceAll(/\s/g, "");
}
