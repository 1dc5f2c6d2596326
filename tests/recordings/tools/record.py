#!/usr/bin/env python3
"""Runs the scenarios against a server and writes what it answered, normalised. Standard library only.

    python3 record.py BASE_URL OUT [--scenarios DIR] [--only GLOB] [--fake http://127.0.0.1:18190] [--no-clean]

README.md explains the scenario format and the normalisation. Everything in the server's database is deleted
before each scenario: use a throw-away one.
"""
import argparse, ast, datetime, fnmatch, glob, http.client, json, os, re, sys, threading, time, urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
HEADERS = ("content-type", "x-upload-result", "content-disposition", "location", "x-should-retry", "retry-after", "www-authenticate", "allow")
ID = re.compile(r"(?<![A-Za-z0-9_-])([A-Za-z][A-Za-z_]*(?:-[A-Za-z_]+)?)-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?![0-9a-f])")
UUID = re.compile(r"(?<![0-9A-Za-z-])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-f])")
TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?(?: ?[AP]M)?(?: ?UTC)?(Z|[+-]\d\d:?\d\d)?")
NUMBERS = re.compile(r"(_ms|_ns|duration|_seconds|^created|^last_modified|_time_unix.*|^num_tokens.*|_bytes|storage_size|context_window_size_current|context_tokens_after|context_token_estimate)$")
ANY = {"trace_id", "tool_hash", "sandbox_config_fingerprint"}
HOST = re.compile(r"https?://([\w.-]+)[^\s\"']*")
ZERO = "0000-4000-8000-"


# ------------------------------------------------------------------ HTTP

class Client:
    def __init__(self, base):
        u = urllib.parse.urlsplit(base)
        self.host, self.port, self.prefix = u.hostname, u.port or 80, u.path.rstrip("/")

    def call(self, method, path, query=None, body=None, form=None, headers=None, frames=None, timeout=60):
        """-> (status, headers, body or list of frames). frames: give up the stream after so many."""
        pairs = [(k, x) for k, v in (query or {}).items() for x in (v if isinstance(v, list) else [v])]
        url = self.prefix + urllib.parse.quote(path, safe="/%~:@+,;=!$&'()*") + ("?" + urllib.parse.urlencode([(k, str(v).lower() if isinstance(v, bool) else v) for k, v in pairs]) if pairs else "")
        h, raw = {"X-Stainless-Package-Version": "1.12.1", "Accept": "application/json, text/event-stream"}, None
        if form is not None:
            raw, h["Content-Type"] = multipart(form)
        elif isinstance(body, dict) and set(body) == {"$raw"}:
            raw, h["Content-Type"] = body["$raw"].encode(), "application/json"
        elif body is not None:
            raw, h["Content-Type"] = json.dumps(body).encode(), "application/json"
        for k, v in (headers or {}).items():
            h.pop(k, None) if v is None else h.__setitem__(k, v)
        c = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            c.request(method, url, body=raw, headers=h)
            r = c.getresponse()
            got = {k.lower(): v for k, v in r.getheaders()}
            if r.status in (307, 308) and "location" in got:
                loc = urllib.parse.urlsplit(got["location"])
                c.close()
                return self.call(method, loc.path, dict(urllib.parse.parse_qsl(loc.query)), body, form, headers, frames, timeout)
            if got.get("content-type", "").startswith("text/event-stream"):
                return r.status, got, sse(r, frames)
            text = r.read().decode("utf-8", "replace")
            try:
                return r.status, got, json.loads(text) if text else None
            except ValueError:
                return r.status, got, text
        finally:
            c.close()


def sse(r, limit):
    out, event, data = [], None, []
    while True:
        line = r.readline()
        if not line:
            return out
        line = line.decode("utf-8", "replace").rstrip("\r\n")
        if line.startswith("event:"):
            event = line[6:].strip()
        elif line.startswith("data:"):
            data.append(line[5:].strip())
        elif not line and (data or event):
            text = "\n".join(data)
            try:
                payload = json.loads(text)
            except ValueError:
                payload = text
            frame = {"data": payload} if event is None else {"event": event, "data": payload}
            out.append(frame)
            event, data = None, []
            if limit and len(out) >= limit:
                return out


def multipart(form):
    b, out = "----recordings", []
    for k, v in form.items():
        if isinstance(v, dict):
            out.append(f'--{b}\r\nContent-Disposition: form-data; name="{k}"; filename="{v["name"]}"\r\nContent-Type: {v.get("type", "text/plain")}\r\n\r\n{v["content"]}\r\n')
        else:
            out.append(f'--{b}\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n')
    return ("".join(out) + f"--{b}--\r\n").encode(), f"multipart/form-data; boundary={b}"


# ------------------------------------------------------------------ values

def dig(value, path):
    for seg in str(path).split(".") if path != "" else []:
        if isinstance(value, list) and "=" in seg:
            k, v = seg.split("=", 1)
            value = next((x for x in value if isinstance(x, dict) and str(dig_or(x, k.replace("/", "."))) == v), None)
            if value is None:
                raise KeyError(seg)
        elif isinstance(value, list):
            value = value[int(seg)]
        else:
            value = value[seg]
    return value


def dig_or(value, path, default=None):
    try:
        return dig(value, path)
    except (KeyError, IndexError, TypeError, ValueError):
        return default


class Missing(Exception):
    pass


def fill(value, names):
    if isinstance(value, str):
        def one(m):
            if m.group(1) not in names:
                raise Missing(m.group(1))
            return str(names[m.group(1)])
        whole = re.fullmatch(r"\$\{([\w-]+)\}", value)
        if whole and whole.group(1) in names:
            return names[whole.group(1)]
        return re.sub(r"\$\{([\w-]+)\}", one, value)
    if isinstance(value, list):
        return [fill(v, names) for v in value]
    if isinstance(value, dict):
        return {fill(k, names): fill(v, names) for k, v in value.items()}
    return value


# ------------------------------------------------------------------ normalisation

class Normal:
    def __init__(self, own, watch, hide):
        self.ids, self.counts, self.own, self.watch, self.hide = {}, {}, own, watch, hide

    def number(self, kind, value):
        if value not in self.ids:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            self.ids[value] = f"<{kind}-{self.counts[kind]}>"
        return self.ids[value]

    def time(self, m):
        try:
            stamp = datetime.datetime.fromisoformat(f"{m[1]}T{m[2]}{(m[3] or ':00')[:3]}+00:00")
        except ValueError:
            return m[0]
        near = abs((stamp - datetime.datetime.now(datetime.timezone.utc)).total_seconds()) < 3 * 86400
        return "<time>" if near else f"<time {m[1]} {m[2]}>"

    def string(self, s, key=None, error=False):
        for a, b in self.hide:
            s = s.replace(a, b)
        kept = ID.sub(lambda m: m[0] if ZERO in m[0] else self.number(m[1], m[0]), s)
        kept = UUID.sub(lambda m: m[0] if ZERO in m[0] else self.number("uuid", m[0]), kept)
        kept = HOST.sub(lambda m: m[0] if m[1] in ("127.0.0.1", "localhost") or m[1].endswith("example.invalid") else "<url>", TIME.sub(self.time, kept))
        if error and key == "detail" and s.startswith("["):
            found = re.findall(r"'type': '([\w.]+)', 'loc': [(\[](.*?)[)\]], '(?:msg|ctx|input)'", s)
            if found:
                return "<validation: " + "; ".join(sorted({f"{t} at {place(l)}" for t, l in found})) + ">"
        if s.strip() in self.own or len(s) <= 40:
            return kept
        try:                                                         # JSON inside a string stays readable
            inner = json.loads(s)
        except ValueError:
            inner = None
        if isinstance(inner, (dict, list)):
            return {"<json>": self.value(inner)}
        if len(kept) <= 80 and (len(kept.split()) < 7 or any(o in s for o in self.own if len(o) > 12)):
            return kept
        seen = [w for w in self.watch if w in s]
        note = f"; begins: {' '.join(kept.split()[:5])}" if error else ""
        return f"<text of {len(kept)} chars{note}{'; has: ' + ', '.join(seen) if seen else ''}>"

    def value(self, v, key=None, error=False):
        if isinstance(v, dict):
            if "tool_type" in v and v.get("tool_type") not in ("custom", "external_mcp"):
                v = {k: schema(x) if k == "json_schema" else shape(x) if k in ("source_code", "description") else x for k, x in v.items()}
            if isinstance(v.get("type"), str) and v.get("type") == "function" and isinstance(v.get("function"), dict):
                v = {"type": "function", "function": schema(v["function"])}
            return {self.string(k) if ID.search(k) else k: ("<any>" if k in ANY and x is not None else self.value(x, k, error)) for k, x in v.items()}
        if isinstance(v, list):
            if len(v) > 20 and all(isinstance(x, (int, float)) for x in v):
                return f"<vector of {len(v)}>"
            return [self.value(x, key, error) for x in v]
        if isinstance(v, str):
            return self.string(v, key, error)
        if isinstance(v, (int, float)) and not isinstance(v, bool) and v and key and NUMBERS.search(key):
            return "<number>"
        if isinstance(v, float):
            return round(v, 4)
        return v


def place(loc):
    """('body', 'messages', 0, 'function-after[...]') -> body.messages.0: internals of the validator are left out."""
    out = []
    for part in (p.strip().strip("'\"") for p in loc.split(",")):
        if not re.fullmatch(r"[\w-]*", part):
            break
        out.append(part)
    return ".".join(p for p in out if p)


def schema(s):
    """A tool's schema without its prose: parameter names and which are required."""
    if not isinstance(s, dict):
        return s
    p = s.get("parameters") or {}
    return {"name": s.get("name"), "properties": {k: x.get("type") if isinstance(x, dict) else None for k, x in (p.get("properties") or {}).items()},
            "required": sorted(p.get("required") or [])}


def shape(x):
    return "<text>" if isinstance(x, str) and x else x


def strings_of(v, out):
    if isinstance(v, str):
        out.add(v.strip())
    for x in v.values() if isinstance(v, dict) else v if isinstance(v, list) else ():
        strings_of(x, out)
    return out


def pick(body, keep):
    if isinstance(body, list):
        return [pick(x, keep) for x in body]
    if isinstance(body, dict):
        if "detail" in body or "error" in body:
            return body
        out = {}
        for k in keep:
            got = dig_or(body, k, Missing)
            if got is not Missing:
                out[k] = got
        return out
    return body


# ------------------------------------------------------------------ running

CLEAN = [("agents", {"limit": 200, "show_hidden_agents": True}), ("groups", {"limit": 200, "show_hidden_groups": True}),
         ("conversations", {"limit": 200}), ("blocks", {"limit": 200, "show_hidden_blocks": True}),
         ("folders", {"limit": 200}), ("archives", {"limit": 200}), ("identities", {"limit": 200}), ("mcp-servers", {}),
         ("sandbox-config", {"limit": 50}), ("tools", {"limit": 500, "tool_types": ["custom", "external_mcp"]}), ("providers", {})]


def clean(client):
    for name, query in CLEAN:
        try:
            for _ in range(5):
                status, _, body = client.call("GET", f"/v1/{name}/", query)
                body = body.get("data") if isinstance(body, dict) else body
                rows = [r for r in body if isinstance(r, dict)] if status == 200 and isinstance(body, list) else []
                if name == "providers":
                    rows = [r for r in rows if r.get("provider_category") == "byok"]
                for r in rows:
                    client.call("DELETE", f"/v1/{name}/{r['id']}")
                if not rows or name in ("providers", "mcp-servers"):
                    break
        except (OSError, http.client.HTTPException) as e:
            print(f"  clean {name}: {e}", file=sys.stderr)


def run_step(client, step, names):
    """Does one request; polls if asked. -> (status, headers, body)"""
    method, path = fill(step["do"], names).split(" ", 1)
    args = dict(query=fill(step.get("query"), names), body=fill(step.get("json"), names), form=fill(step.get("form"), names),
                headers=fill(step.get("headers"), names), frames=step.get("frames"))
    until, deadline = step.get("until"), time.time() + step.get("within", 30)
    while True:
        status, headers, body = client.call(method, path, **args)
        if not until or time.time() > deadline:
            return status, headers, body
        if all(dig_or(body, k) in v for k, v in until.items()):
            return status, headers, body
        time.sleep(0.2)


def run(client, fake, fake_url, scenario, hide):
    own = strings_of({"s": scenario["steps"], "l": scenario.get("llm", {})}, set())
    strings_of([json.dumps(r.get("args") or {}) for rs in scenario.get("llm", {}).values() for r in rs], own)
    names = {"dir": HERE, "python": sys.executable, "zero": "00000000-0000-4000-8000-000000000000", "llm": fake_url}
    normal = Normal(own, scenario.get("watch", []), hide)
    fake.call("PUT", "/_control/scripts", body=scenario.get("llm", {}))
    out, threads = [], {}
    for step in scenario["steps"]:
        rec = {"do": step.get("do") or step.get("wait") and f"wait for {step['wait']}" or "sleep"}
        asked = {k: step[k] for k in ("query", "json", "form", "headers") if k in step}
        if asked and not step.get("quiet"):
            rec["request"] = asked
        if "sleep" in step:
            time.sleep(step["sleep"])
            continue
        try:
            if step.get("do") == "MODEL":
                rec["saw"] = normal.value([{k: v for k, v in r.items() if v is not None} for r in fake.call("GET", "/_control/requests")[2]])
                out.append(rec)
                continue
            if "background" in step:
                box = {}
                def work(step=step, box=box, names=dict(names)):
                    try:
                        box["got"] = run_step(client, step, names)
                    except (OSError, http.client.HTTPException, Missing) as e:
                        box["got"] = (0, {}, {"failed": type(e).__name__})
                fill(step["do"], names), fill(step.get("json"), names)
                t = threads[step["background"]] = (threading.Thread(target=work, daemon=True), box)
                t[0].start()
                continue
            if "wait" in step:
                if step["wait"] not in threads:
                    raise Missing(step["wait"])
                t, box = threads[step["wait"]]
                t.join(60)
                status, headers, body = box.get("got", (0, {}, {"failed": "no answer in 60 s"}))
            else:
                status, headers, body = run_step(client, step, names)
        except Missing as e:
            rec["not_run"] = f"no value for {e}"
            out.append(rec)
            continue
        except (OSError, http.client.HTTPException) as e:
            rec["failed"] = type(e).__name__
            out.append(rec)
            continue
        for name, path in (step.get("save") or {}).items():
            got = dig_or(body, path)
            if got is not None:
                names[name] = got
        rec["status"] = status
        kept = {k: headers[k].split(";")[0].replace("http://%s:%s" % (client.host, client.port), "") for k in HEADERS if k in headers}
        if kept != {"content-type": "application/json"}:
            rec["headers"] = {k: normal.string(v) for k, v in kept.items()}
        if step.get("quiet") and status < 400:
            out.append(rec)
            continue
        error = status >= 400
        is_sse = kept.get("content-type") == "text/event-stream"
        if step.get("only") and isinstance(body, list):
            body = [x for x in body if all(fnmatch.fnmatch(str(dig_or(x, k)), v) for k, v in step["only"].items())]
        if not is_sse and step.get("keep"):
            body = pick(body, step["keep"])
        if step.get("sort") and isinstance(body, list):
            body = sorted(body, key=lambda x: str(x) if step["sort"] == "." else str(x[step["sort"]] if isinstance(x, dict) and step["sort"] in x else dig_or(x, step["sort"])))
        if is_sse and step.get("kinds"):
            seen = [{k: f["data"][k] for k in ("message_type", "stop_reason") if k in f["data"]} if isinstance(f["data"], dict) else f["data"] for f in body]
            rec["frames"] = [{"data": x} for i, x in enumerate(seen) if not i or x != seen[i - 1]]
        elif is_sse:
            rec["frames"] = [{**f, "data": normal.value(f["data"], error=f.get("event") == "error" or (isinstance(f["data"], dict) and f["data"].get("message_type") == "error_message"))} for f in body]
        else:
            rec["body"] = normal.value(body, error=error)
        out.append(rec)
    for t, _ in threads.values():
        t.join(30)
    return {"scenario": scenario["name"], "server": None, "steps": out}


# ------------------------------------------------------------------ writing

def dump(v, width=150, depth=0):
    """JSON that a person can read: one line where it fits."""
    flat = json.dumps(v, ensure_ascii=False)
    if len(flat) + depth <= width or not isinstance(v, (dict, list)) or not v:
        return flat
    pad, end = " " * (depth + 1), " " * depth
    if isinstance(v, dict):
        rows = [f"{pad}{json.dumps(k, ensure_ascii=False)}: {dump(x, width, depth + 1)}" for k, x in v.items()]
        return "{\n" + ",\n".join(rows) + f"\n{end}}}"
    return "[\n" + ",\n".join(pad + dump(x, width, depth + 1) for x in v) + f"\n{end}]"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("base"), p.add_argument("out")
    p.add_argument("--scenarios", default=os.path.join(os.path.dirname(HERE), "scenarios"))
    p.add_argument("--only", default="*")
    p.add_argument("--fake", default="http://127.0.0.1:18190")
    p.add_argument("--label", default=None, help="what the server is called in the files")
    p.add_argument("--no-clean", action="store_true")
    a = p.parse_args()
    client, fake = Client(a.base), Client(a.fake)
    hide = [(HERE, "<dir>"), (sys.executable, "<python>"), (a.fake, "<llm>"), (a.base.rstrip("/"), "<server>")]
    os.makedirs(a.out, exist_ok=True)
    for path in sorted(glob.glob(os.path.join(a.scenarios, "*.json"))):
        scenario = json.load(open(path))
        if not any(fnmatch.fnmatch(scenario["name"], g) for g in a.only.split(",")):
            continue
        start = time.time()
        if not a.no_clean:
            clean(client)
        result = run(client, fake, a.fake, scenario, hide)
        result["server"] = a.label or a.base
        with open(os.path.join(a.out, scenario["name"] + ".json"), "w") as f:
            f.write(dump(result) + "\n")
        bad = [s for s in result["steps"] if "not_run" in s or "failed" in s]
        print(f"{scenario['name']:44} {len(result['steps']):3} steps {time.time() - start:5.1f} s{'  NOT RUN: ' + str(len(bad)) if bad else ''}", flush=True)


if __name__ == "__main__":
    main()
