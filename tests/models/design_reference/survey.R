# Values of R's survey package for the table beside this script, as JSON on standard output.
suppressPackageStartupMessages(library(survey))
folder <- dirname(sub("--file=", "", grep("--file=", commandArgs(FALSE), value = TRUE)))
rows <- read.csv(file.path(folder, "table.csv"), stringsAsFactors = TRUE)
single <- rows[rows$stratum != "west" | rows$psu == "west1", ]
probabilities <- c(.1, .25, .5, .75, .9)

designs <- list(
  weights = svydesign(ids = ~1, weights = ~w, data = rows),
  strata = svydesign(ids = ~1, strata = ~stratum, weights = ~w, data = rows),
  psus = svydesign(ids = ~psu, weights = ~w, data = rows),
  both = svydesign(ids = ~psu, strata = ~stratum, weights = ~w, data = rows),
  finite = svydesign(ids = ~psu, strata = ~stratum, weights = ~w, fpc = ~psus, data = rows)
)
lonely <- svydesign(ids = ~psu, strata = ~stratum, weights = ~w, data = single)

settings <- glm.control(epsilon = 1e-15, maxit = 100)
estimates <- function(fit) list(estimate = as.numeric(coef(fit)), covariance = as.numeric(vcov(fit)))

values_of <- function(design) list(
  degrees = degf(design),
  mean = estimates(svymean(~y + x, design)),
  effect = as.numeric(deff(svymean(~y, design, deff = TRUE))),
  total = estimates(svytotal(~y + x, design)),
  ratio = estimates(svyratio(~y, ~x, design)),
  variance = estimates(svyvar(~y, design)),
  proportions = estimates(svymean(~group, design)),
  counts = as.numeric(svytable(~group + z, design)),
  means_by = {
    by <- svyby(~y, ~group, design, svymean)
    list(estimate = as.numeric(coef(by)), se = as.numeric(SE(by)))
  },
  totals_by = {
    by <- svyby(~y, ~group, design, svytotal)
    list(estimate = as.numeric(coef(by)), se = as.numeric(SE(by)))
  },
  quantiles = as.numeric(coef(svyquantile(~y, design, probabilities, ci = FALSE))),
  ttest = {
    test <- svyttest(y ~ z, design)
    list(statistic = as.numeric(test$statistic), difference = as.numeric(test$estimate))
  },
  gaussian = estimates(svyglm(y ~ x + group, design)),
  domain = estimates(svyglm(y ~ x, subset(design, group == "b"))),
  binomial = estimates(svyglm(z ~ x + group, design, family = quasibinomial(), control = settings)),
  poisson = estimates(svyglm(visits ~ x + group, design, family = quasipoisson(), control = settings))
)

lonely_of <- function(rule) {
  options(survey.lonely.psu = rule)
  list(mean = estimates(svymean(~y + x, lonely)), gaussian = estimates(svyglm(y ~ x, lonely)))
}

json <- function(value) {
  if (is.list(value)) {
    fields <- sprintf('"%s": %s', names(value), vapply(value, json, ""))
    return(paste0("{", paste(fields, collapse = ", "), "}"))
  }
  numbers <- sprintf("%.17g", value)
  if (length(value) == 1) numbers else paste0("[", paste(numbers, collapse = ", "), "]")
}

rules <- c("adjust", "average", "certainty")
stored <- c(lapply(designs, values_of), list(lonely = sapply(rules, lonely_of, simplify = FALSE)))
stored$version <- NULL
cat(json(stored), "\n")
