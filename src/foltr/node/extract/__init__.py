"""Text out of files, in child processes with limits: `Extractor().extract(paths)`.

records    what comes back, limits, messages          formats    the kind of a file
pool       children that are killed when late         child      the parent's side of one child
worker     the child                                  confine    what it gives up first
files      opening and reading                        documents  kind -> extractor, secrets
plain html man office mail pdf                        one format family each
"""

from foltr.node.extract.formats import KINDS, kind_of
from foltr.node.extract.pool import Extractor
from foltr.node.extract.records import Extracted, ExtractedDocument, Failure, Limits
from foltr.node.extract.secrets import looks_secret

__all__ = ["KINDS", "Extracted", "ExtractedDocument", "Extractor", "Failure", "Limits", "kind_of", "looks_secret"]
