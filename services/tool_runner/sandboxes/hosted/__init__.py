"""What the vendors' sandboxes have in common: `boot` runs there before the worker, `parcel` is what is sent there."""
