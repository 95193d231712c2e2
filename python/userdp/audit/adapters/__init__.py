"""Other libraries' private programs without their noise, and what their noise is made for.

`userdp.audit.audit_sensitivity` takes any function of a table. An adapter makes one of a library's object, and reads
the claim from the library's own accounting.
"""

from __future__ import annotations

from userdp.audit.adapters.opendp import from_opendp_builder, from_opendp_measurement
from userdp.audit.noise_free import NoiseFree

__all__ = ["NoiseFree", "from_opendp_builder", "from_opendp_measurement"]
