# %% [markdown]
# needs: cryptography

# %%
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
box = Fernet(b"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")
token = box.encrypt_at_time(b"data", 1)
print(box.decrypt(token))

# %%
key = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32))
public = key.public_key()
print(key.sign(b"m").hex()[:8], public.public_bytes_raw().hex()[:8])

# %%
digest = hashes.Hash(hashes.SHA256())
digest.update(b"abc")
print(digest.copy().finalize().hex()[:8])

# %%
public.verify(key.sign(b"m"), b"m")
print(public == key.public_key(), box.decrypt(token))

# %%
digest.update(b"def")
print(digest.finalize().hex()[:8], box.extract_timestamp(token))

# %%
# raises: InvalidToken
box.decrypt(b"bad")
