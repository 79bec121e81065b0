"""Text out of files, in child processes with limits: `Extractor().extract(paths)`.

records            extracted documents, limits, messages on a socket
pool child         the parent: children that are killed when late, one child
keeper files       opens files, passes their descriptors to a child, checks and closes them; reading them
worker documents   the child; the kind of a file decides about the extractor
confine            rights that the child gives up before it reads a file: seccomp, Landlock, resource limits
formats            the kind of a file, from its name and its first bytes
plain markup man pdf office mail   one family of formats each; unpack reads zip and gzip within limits
secrets            texts that are not indexed

A file ends as `Extracted`, or as `Failure` with a state: "skipped" (binary, too large, encrypted, a secret), "failed"
(damaged, too slow, too much memory, no permission, vanished) or "waiting" (changed while it was read: try again).
"""

from foltr.node.extract.formats import KINDS, kind_of
from foltr.node.extract.pool import Extractor
from foltr.node.extract.records import Extracted, ExtractedDocument, Failure, Limits
from foltr.node.extract.secrets import looks_secret

__all__ = ["KINDS", "Extracted", "ExtractedDocument", "Extractor", "Failure", "Limits", "kind_of", "looks_secret"]
