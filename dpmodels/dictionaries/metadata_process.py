"""Variable metadata of an SPSS, Stata or SAS file, read in a separate process.

Its text is run by :mod:`dpmodels.dictionaries.table`: a damaged file may crash the library,
which must not end the caller. It prints JSON and reads no row.
"""

import contextlib
import json
import sys


def main(path: str, reader: str, options: str) -> None:
    """Print a list for each variable: name, label, type, format, measure, labels, missing."""
    # Limit memory where the system supports it.
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
    import pyreadstat

    read = getattr(pyreadstat, reader)
    _, metadata = read(path, metadataonly=True, output_format="dict", **json.loads(options))
    variables = [
        {
            "name": name,
            "label": metadata.column_names_to_labels.get(name) or "",
            "type": metadata.readstat_variable_types.get(name) or "",
            "format": metadata.original_variable_types.get(name) or "",
            "measure": metadata.variable_measure.get(name) or "",
            "labels": list(metadata.variable_value_labels.get(name, {}).items()),
            "missing": [
                [bounds["lo"], bounds["hi"]] for bounds in metadata.missing_ranges.get(name, ())
            ],
        }
        for name in metadata.column_names
    ]
    sys.stdout.write(json.dumps(variables))


if __name__ == "__main__":
    main(*sys.argv[1:])
