"""Every protocol between sites, by name."""

from typing import Any

from dpmodels.sites.cape import Cape
from dpmodels.sites.dpdispca import DPdisPCA
from dpmodels.sites.full import Full
from dpmodels.sites.pooled import Local, Pooled
from dpmodels.sites.secure_sum import SecureSum

# Those whose sites can be different organisations.
SENT: dict[str, type[Any]] = {
    "full": Full,
    "dpdispca": DPdisPCA,
    "cape": Cape,
    "secure_sum": SecureSum,
}
PROTOCOLS: dict[str, type[Any]] = {"pooled": Pooled, "local": Local, **SENT}
