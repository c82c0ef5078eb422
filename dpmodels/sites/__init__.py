"""One release of rows that lie at several sites.

Sites hold disjoint rows of the same variables. Exact integer statistics add,
so the distribution of a release does not depend on where its rows lie; what differs
between protocols is who sees what on the way, and so who has to be trusted.

*Neighbours.* Which site holds a row is fixed. Neighbours differ in one row of
one site (``replace``, and then every site's number of rows is public), or by
one row more or fewer at one site (``add-remove``, and then they are private).
The sensitivity of every statistic is that of one table. Rows are disjoint, so
releases of single sites compose in parallel: the joint one costs what one
site's costs, and is charged once.

*Overlap.* A row that two sites hold counts twice and is protected less: under
``full`` and ``dpdispca`` its guarantee is that of two releases, under the others
the sum moves twice as far. No protocol can detect this, since none shows rows.
The same holds for a person with rows at two sites: the limit of rows per person
applies at each of them.

==========  ================  =======================  ==================  =======
protocol    trusted           aggregator sees          sites that may      noise
                                                       collude with it     variance
==========  ================  =======================  ==================  =======
pooled      aggregator        statistics without       none, being         1
                              noise                    trusted itself
local       nobody            one site's release       all others          1, fewer
                                                                           rows
full        nobody            every site's noisy       all others          S
                              moments
dpdispca    nobody            the root of the leading  all others          S, leading
                              part of each                                 parts only
cape        sites follow the  vectors under            t of S, declared    S/(S - t)
            protocol          correlated noise, their
                              noisy sum
secure_sum  sites follow the  the noisy sum alone      t of S, declared    S/(S - t)
            protocol
==========  ================  =======================  ==================  =======

*Colluders.* Whoever sees a result can subtract the noise that they added. So
the honest sites' noise alone has to suffice: with t colluders each site adds
the planned variance over ``S - t``, and the sum has ``S/(S - t)`` times the
planned one. A site that is only curious is a colluder with itself: ``t = 1``,
the default, is the smallest for which the guarantee holds against the other sites
too; ``t = 0`` gives the noise of a trusted aggregator and protects against an
aggregator, or a reader, that is not a site. What noise the honest sites
add together, and why that suffices though sums of discrete Gaussians are not
discrete Gaussians, is proved in :mod:`dpmodels.sites.summing`.

*Rounds.* A mechanism with several rounds asks a protocol of masked sums for each of them,
and its answer goes back to all sites: :mod:`dpmodels.sites.joint_rounds`.

*Honest but curious.* All protocols assume that sites and aggregator follow
the protocol and read all that they receive. A site that sends nonsense spoils the
result and no one's privacy; a site that adds no noise is a colluder.
Keys are assumed authentic: sites must know who hands them out.

*What is not hidden.* That a site takes part, its name, the length of its
message and, under ``replace``, its number of rows.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
