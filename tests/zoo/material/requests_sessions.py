# %% [markdown]
# needs: requests

# %%
import requests
from requests.auth import HTTPBasicAuth
session = requests.Session()
session.headers["X-Lab"] = "zoo"
session.cookies.set("a", "1", domain="example.org")
session.auth = HTTPBasicAuth("u", "p")
print(session.headers["X-Lab"], session.cookies.get("a"))

# %%
request = requests.Request("GET", "http://example.org/x", params={"q": [1, 2]})
ready = session.prepare_request(request)
print(ready.url, ready.headers["Authorization"], ready.headers["Cookie"])

# %%
session.headers.update({"x-lab": "two"})
session.cookies.set("b", "2")
print(session.headers["X-LAB"], len(session.cookies), session.headers)

# %%
class Fake(requests.adapters.BaseAdapter):
    def send(self, request, **kwargs):
        answer = requests.Response()
        answer.status_code, answer._content, answer.url, answer.request = 404, b'{"a": 1}', request.url, request
        return answer
    def close(self):
        pass
session.mount("fake://", Fake())
answer = session.get("fake://x")
print(answer.status_code, answer.json(), answer.ok)

# %%
again = session.get("fake://y")
print(sorted(session.adapters), again.url, answer.request.url)

# %%
# raises: HTTPError
answer.raise_for_status()
