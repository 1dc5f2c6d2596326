// How the tool's code gets at packages: those of its layer, of NODE_PATH, and Node's own.

import Module, { createRequire, isBuiltin } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import vm from "node:vm";

const LAYER = "/opt/loci/layer";

export class Modules {
  constructor() {
    const folders = (process.env.NODE_PATH ?? "").split(path.delimiter).filter(Boolean);
    if (folders.length) Module._initPaths(); // it was read before this call's environment was known
    const beside = folders.find((folder) => path.basename(folder) === "node_modules");
    // A file that need not be there: names are looked up from beside it.
    this.base = path.join(beside ? path.dirname(beside) : LAYER, "tool.js");
    this.local = path.join(process.cwd(), "tool.js");
    this.fromLayer = createRequire(this.base);
    this.fromHere = createRequire(this.local);
    this.require = Object.assign((name) => this.requireFrom(name)(name), {
      resolve: (name, options) => this.requireFrom(name).resolve(name, options),
      cache: this.fromLayer.cache,
      main: undefined,
    });
  }

  requireFrom(name) {
    return /^\.{0,2}\//.test(name) ? this.fromHere : this.fromLayer;
  }

  /** import(name), and what only `require` finds, too. */
  async import(name) {
    if (isBuiltin(name) || /^(data|file):/.test(name)) return import(name);
    if (/^\.{0,2}\//.test(name)) return import(pathToFileURL(path.resolve(name)));
    try {
      return await this.importer()(name);
    } catch (error) {
      if (error?.code !== "ERR_MODULE_NOT_FOUND" || !error.message.includes(`'${name.split("/")[0]}`)) throw error;
      return this.required(name);
    }
  }

  required(name) {
    let resolved;
    try {
      resolved = this.fromLayer.resolve(name);
    } catch {
      throw new Error(`there is no package '${name}' in this sandbox: add it to the tool's npm_requirements`);
    }
    return import(pathToFileURL(resolved));
  }

  importer() {
    this.imports ??= quietly(() =>
      new vm.Script("(name) => import(name)", {
        filename: this.base,
        importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
      }).runInThisContext(),
    );
    return this.imports;
  }
}

// Node warns of a feature that is documented, and used here as documented, on the tool's stderr.
function quietly(make) {
  const warn = process.emitWarning;
  process.emitWarning = () => {};
  try {
    return make();
  } finally {
    process.emitWarning = warn;
  }
}
