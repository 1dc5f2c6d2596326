// A module's imports and exports, and a program's last expression, as statements of a function body.
//
// Only what has to be is replaced, and by as many lines: positions in errors stay those of the source.

import { parse } from "acorn";

const LATEST = { ecmaVersion: "latest", allowHashBang: true };

/**
 * The parts of the body: {strict, prologue, body, epilogue}; `prologue` must stand on the body's first line.
 * Raises acorn's SyntaxError, which has `loc`.
 */
export function rewritten(code, { name, script }) {
  const tree = parsed(code, script);
  const rewrite = new Rewrite(code);
  if (code.startsWith("#!")) rewrite.replace(0, 2, "//");
  for (const node of tree.body) rewrite.statement(node);
  if (/\bimport\s*[.(/]/.test(code)) rewrite.dynamic(tree);
  if (script) rewrite.keepValue(tree.body.at(-1));
  const epilogue = script ? "" : rewrite.returnFunction(name);
  return { strict: rewrite.module, prologue: rewrite.prologue.join(""), body: rewrite.done(), epilogue };
}

// What is no module may still be sloppy CommonJS.
function parsed(code, script) {
  const options = { ...LATEST, allowReturnOutsideFunction: script };
  try {
    return parse(code, { ...options, sourceType: "module" });
  } catch (error) {
    try {
      return parse(code, { ...options, sourceType: "script", allowAwaitOutsideFunction: true });
    } catch {
      throw error;
    }
  }
}

class Rewrite {
  constructor(code) {
    this.code = code;
    this.edits = [];
    this.prologue = [];
    this.exported = new Map(); // name outside -> name inside
    this.module = false;
  }

  replace(start, end, text) {
    const lines = this.code.slice(start, end).replaceAll(/[^\n]/g, "");
    this.edits.push({ start, end, text: text + lines });
  }

  done() {
    let body = this.code;
    for (const { start, end, text } of this.edits.sort((one, other) => other.start - one.start || other.end - one.end)) {
      body = body.slice(0, start) + text + body.slice(end);
    }
    return body;
  }

  statement(node) {
    const rewrite = {
      ImportDeclaration: this.imports,
      ExportNamedDeclaration: this.exports,
      ExportDefaultDeclaration: this.exportsDefault,
      ExportAllDeclaration: this.exportsAll,
    }[node.type];
    if (!rewrite) return;
    this.module = true;
    rewrite.call(this, node);
  }

  imports(node) {
    const bound = node.specifiers.map((each) => [each.local.name, importedName(each)]);
    this.bring(node.source, bound);
    this.replace(node.start, node.end, "");
  }

  bring(source, bound) {
    const locals = bound.map(([local]) => local).join(", ");
    const names = JSON.stringify(bound.map(([, name]) => name));
    this.prologue.push(`const [${locals}] = await $import(${JSON.stringify(source.value)}, ${names}); `);
  }

  exports(node) {
    if (node.declaration) {
      this.replace(node.start, node.declaration.start, "");
      for (const name of declared(node.declaration)) this.exported.set(name, name);
      return;
    }
    for (const { local, exported } of node.specifiers) this.exported.set(text(exported), text(local));
    if (node.source) {
      const fresh = node.specifiers.map(({ exported, local }) => [`$from${this.prologue.length}_${text(exported)}`, text(local), text(exported)]);
      for (const [inside, , outside] of fresh) this.exported.set(outside, inside);
      this.bring(node.source, fresh);
    }
    this.replace(node.start, node.end, "");
  }

  exportsDefault({ start, end, declaration }) {
    const keywords = /^export\s+default/.exec(this.code.slice(start))?.[0].length ?? declaration.start - start;
    if (/Declaration$/.test(declaration.type) && declaration.id) {
      this.replace(start, start + keywords, "");
      this.exported.set("default", declaration.id.name);
      return;
    }
    this.replace(start, start + keywords, "$box.default = ");
    this.replace(end, end, ";");
  }

  exportsAll({ loc, start }) {
    const line = this.code.slice(0, start).split("\n").length;
    throw Object.assign(new SyntaxError("`export *` in a tool: name what is exported"), { loc: loc ?? { line, column: 0 } });
  }

  // `import(x)` and `import.meta`, which only real modules have, by names of the same length.
  dynamic(tree) {
    const waiting = [tree];
    while (waiting.length) {
      const node = waiting.pop();
      if (node.type === "ImportExpression") this.replace(node.start, node.start + 6, "$load$");
      if (node.type === "MetaProperty" && node.meta.name === "import") this.replace(node.start, node.end, "$importMeta");
      for (const value of Object.values(node)) {
        for (const child of Array.isArray(value) ? value : [value]) if (child?.type) waiting.push(child);
      }
    }
  }

  keepValue(last) {
    if (last?.type !== "ExpressionStatement") return;
    const end = this.code[last.end - 1] === ";" ? last.end - 1 : last.end;
    this.replace(last.start, last.start, "$box.value = (");
    this.replace(end, end, ")");
  }

  returnFunction(name) {
    const inside = this.exported.get(name) ?? (isName(name) ? name : undefined) ?? this.exported.get("default");
    const main = this.exported.get("default");
    const kept = main ? `$box.default = ${main}; ` : "";
    const local = inside && isName(inside) ? `typeof ${inside} === "undefined" ? undefined : ${inside}` : "undefined";
    return `${kept}return { name: ${JSON.stringify(name)}, local: ${local} };`;
  }
}

function importedName({ type, imported }) {
  if (type === "ImportDefaultSpecifier") return "default";
  return type === "ImportNamespaceSpecifier" ? "*" : text(imported);
}

function text(node) {
  return node.name ?? node.value;
}

function declared({ id, declarations }) {
  return (declarations ?? [{ id }]).map((each) => each.id.name).filter(Boolean);
}

const RESERVED = /^(await|break|case|catch|class|const|continue|debugger|default|delete|do|else|enum|export|extends|false|finally|for|function|if|import|in|instanceof|let|new|null|return|static|super|switch|this|throw|true|try|typeof|var|void|while|with|yield)$/;

function isName(word) {
  return /^[A-Za-z_$][\w$]*$/.test(word) && !RESERVED.test(word);
}
