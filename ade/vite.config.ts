import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vitest/config";

// The gateway packs nothing while it serves: what is packed lies beside each file.
function packed(): Plugin {
  return {
    name: "packed",
    apply: "build",
    writeBundle(options) {
      const folder = join(options.dir ?? "dist", "assets");
      for (const name of readdirSync(folder)) {
        const file = join(folder, name);
        writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level: 9 }));
      }
    },
  };
}

export default defineConfig({
  // A proxy may serve the page under a path of its own.
  base: "./",
  plugins: [react(), packed()],
  build: {
    outDir: process.env["ADE_OUT"] ?? "dist",
    emptyOutDir: true,
    // The policy takes files alone.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2023",
    manifest: "manifest.json",
  },
  // Modules ask where the page is when they are loaded.
  test: { include: ["src/**/*.test.ts"], setupFiles: ["src/test-place.ts"] },
});
