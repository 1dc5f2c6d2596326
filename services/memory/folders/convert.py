"""Folders on the wire, as several servicers send them."""

from loci.memory.v1 import folder_pb2
from services.common.codec import Codec
from services.memory.folders.model import Folder

folder_message = Codec(Folder, folder_pb2.Folder).encode
