"""Every primitive gives the answers of its standard."""

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from foltr.errors import SecureAggregationError
from foltr.secagg import crypto as primitives


def test_x25519_of_rfc_7748_section_6_1():
    alice = bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
    bob = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
    keys = [primitives.agreement_key(secret) for secret in (alice, bob)]
    publics = [primitives.public_of(key) for key in keys]
    assert publics[0].hex() == "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
    assert publics[1].hex() == "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
    shared = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"
    assert primitives.agree(keys[0], publics[1]).hex() == primitives.agree(keys[1], publics[0]).hex() == shared


@pytest.mark.parametrize("point", [bytes(32), b"\x01" + bytes(31), b"short"])
def test_a_key_that_agrees_with_everybody_is_refused(point):
    with pytest.raises(SecureAggregationError, match="not usable"):
        primitives.agree(primitives.agreement_key(primitives.new_secret()), point)


@pytest.mark.parametrize(
    ("secret", "public", "message", "signature"),
    [
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
            "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        ),
    ],
)
def test_ed25519_of_rfc_8032_section_7_1(secret, public, message, signature):
    identity = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(secret))
    assert identity.public_key().public_bytes_raw().hex() == public
    assert identity.sign(bytes.fromhex(message)).hex() == signature
    assert primitives.signed_by(bytes.fromhex(public), bytes.fromhex(signature), bytes.fromhex(message))
    assert not primitives.signed_by(bytes.fromhex(public), bytes.fromhex(signature), b"another message")
    assert not primitives.signed_by(bytes.fromhex(public), bytes.fromhex(signature)[:-1], bytes.fromhex(message))


def test_hkdf_of_rfc_5869_appendix_a():
    first = primitives.hkdf(b"\x0b" * 22, salt=bytes(range(13)), info=bytes(range(0xF0, 0xFA)), size=42)
    assert first.hex() == ("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865")
    third = primitives.hkdf(b"\x0b" * 22, info=b"", size=42)
    assert third.hex() == ("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8")


def test_a_derived_key_is_that_of_hkdf():
    info = primitives.between(bytes(32), 3, 4, "mask")
    assert primitives.derive(primitives.extract(b"agreed"), bytes(32), 3, 4, "mask") == primitives.hkdf(
        b"agreed", info=info
    )


def test_points_of_small_order_are_those_that_the_library_refuses():
    """Every listed point gives the zero secret, and a fresh key is not listed."""
    key = primitives.agreement_key(primitives.new_secret())
    for point in primitives._SMALL_ORDER:
        assert not primitives.usable(point)
        with pytest.raises(SecureAggregationError, match="not usable"):
            primitives.agree(key, point)
    assert primitives.usable(primitives.public_of(key))
    assert not primitives.usable(b"short")


def test_chacha20_poly1305_of_rfc_8439_section_2_8_2():
    """The standard's nonce is not zero, so the cipher is called as `encrypt` calls it."""
    key, nonce = bytes(range(0x80, 0xA0)), bytes.fromhex("070000004041424344454647")
    plain = (
        b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
        b"sunscreen would be it."
    )
    sealed = ChaCha20Poly1305(key).encrypt(nonce, plain, bytes.fromhex("50515253c0c1c2c3c4c5c6c7"))
    assert sealed[:16].hex() == "d31a8d34648e60db7b86afbc53ef7ec2"
    assert sealed[-16:].hex() == "1ae10b594f09e26a7e902ecbd0600691"


def test_what_is_sealed_opens_only_as_it_was():
    key, other = primitives.new_secret(), primitives.new_secret()
    sealed = primitives.encrypt(key, b"share", b"round 1")
    assert primitives.decrypt(key, sealed, b"round 1") == b"share"
    assert sealed == ChaCha20Poly1305(key).encrypt(bytes(12), b"share", b"round 1")
    for wrong in (
        (other, sealed, b"round 1"),
        (key, sealed, b"round 2"),
        (key, sealed[:-1], b"round 1"),
        (key, b"", b""),
    ):
        with pytest.raises(SecureAggregationError, match="changed"):
            primitives.decrypt(*wrong)


def test_aes_256_ctr_of_sp_800_38a_section_f_5_5():
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    plain = bytes.fromhex(
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
        "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
    )
    stream = primitives.expand(key, 64, counter=bytes(range(0xF0, 0x100)))
    assert bytes(a ^ b for a, b in zip(plain, stream, strict=True)).hex() == (
        "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
        "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6"
    )


@pytest.mark.parametrize("bits", [32, 64])
def test_a_mask_is_the_keystream_from_counter_zero(bits):
    """AES-256 of the blocks 0, 1, 2 under the zero key: H, the tag and the text of GCM's test cases 13 and 14."""
    blocks = "dc95c078a2408989ad48a21492842087530f8afbc74536b9a963b4f1c4cb738bcea7403d4d606b6e074ec5d3baf39d18"
    mask = primitives.masks([bytes(32)], 48 * 8 // bits, bits)
    assert mask.tobytes().hex() == blocks
    assert mask.dtype == np.dtype(f"<u{bits // 8}")


def test_keys_differ_in_every_part_of_their_label():
    secret = primitives.new_secret()
    uses = [
        (context, a, b, use) for context in (b"r1", b"r2") for a in (1, 2) for b in (1, 2) for use in ("mask", "shares")
    ]
    assert len({primitives.derive(secret, *use) for use in uses}) == len(uses)


def test_labels_cannot_be_read_in_two_ways():
    assert primitives.label("ab", "c") != primitives.label("a", "bc")
    assert primitives.label(1, "") != primitives.label("", 1)
