"""What an analysis will tell, before anything is read or spent.

It stands beside the house: nothing imports it.
"""

from dpmodels.planning import analysis as analysis
