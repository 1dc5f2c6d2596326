/** Unit tests have no page: this is where it would be. */
Object.assign(globalThis, { location: new URL("http://localhost:8283/") });
