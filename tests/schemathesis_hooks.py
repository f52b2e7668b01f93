"""How scripts/api-test sends a component: as the bytes that it is."""

import schemathesis
from schemathesis.transport.serialization import serialize_binary


@schemathesis.serializer("application/wasm")
def component(ctx, value):
    return serialize_binary(value)
