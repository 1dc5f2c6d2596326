"""Media types of pictures, by their bytes. Pure.

Labels are often wrong: `image/jpg` is no type, screenshots are saved under another name, and vendors refuse a request
whose label and bytes differ. So the bytes decide; what they do not tell keeps its label, in its registered spelling.
"""

from base64 import b64decode
from binascii import Error

from services.llm_gateway.core.chat import Image

_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"%PDF-", "application/pdf"),
)
# Files of ISO base media, by their brand.
_BRANDS = {b"heic": "image/heic", b"heix": "image/heic", b"mif1": "image/heif", b"avif": "image/avif"}
_SPELLINGS = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png", "": "image/png"}
# As many base64 digits as hold the longest beginning.
_DIGITS = 24
_MARK = ";base64"


def with_media_type(image: Image) -> Image:
    """Returns the picture under the type that its bytes have; one whose address holds it is given by value."""
    data, label = image.data, image.media_type
    if image.url[:5].lower() == "data:":
        head, comma, data = image.url[5:].partition(",")
        if not comma or not head.lower().endswith(_MARK):
            return image
        label = head.partition(";")[0]
    elif image.url:
        return image
    label = label.partition(";")[0].strip().lower()
    media_type = _type_of(data) or _SPELLINGS.get(label, label)
    return Image(data, "", media_type, image.detail)


def _type_of(data: str) -> str:
    """Returns the type of what base64 stands for; "" where it is unknown."""
    try:
        begins = b64decode(data[:_DIGITS], validate=True)
    except (Error, ValueError):
        return ""
    if begins.startswith(b"RIFF") and begins[8:12] == b"WEBP":
        return "image/webp"
    if begins[4:8] == b"ftyp":
        return _BRANDS.get(begins[8:12], "")
    return next((media_type for beginning, media_type in _BEGINNINGS if begins.startswith(beginning)), "")
