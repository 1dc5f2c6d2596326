"""The common parts of vendors' sandboxes: `boot` runs there before the worker, `parcel` is sent there."""
