"""The private design: the only holder of rows; clip, missing, row norm, lattice."""

from dpmodels.design.callable_module import CallableModule as CallableModule
from dpmodels.design.columns import row_coder as row_coder
from dpmodels.design.private import PrivateDesign as PrivateDesign
from dpmodels.design.private import Scaling as Scaling
from dpmodels.design.private import private_design as private_design
from dpmodels.design.private import scaling as scaling
from dpmodels.design.private import unbound_design as unbound_design
