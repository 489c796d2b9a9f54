# %% [markdown]
# needs: httpx

# %%
import httpx
calls = []
def answer(request):
    calls.append(request.url.path)
    return httpx.Response(200, json={"n": len(calls)}, headers={"X-A": "1"})
print(httpx.URL("http://a/b?x=1").params["x"])

# %%
transport = httpx.MockTransport(answer)
with httpx.Client(transport=transport, base_url="http://zoo", headers={"A": "b"}) as c:
    r = c.get("/one", params={"q": "é"})
print(r.json(), r.request.url, calls)

# %%
r.headers["X-B"] = "2"
h = r.headers
print(h, h is r.headers, r.extensions.get("x"))

# %%
with httpx.Client(transport=transport) as c:
    second = c.post("http://zoo/two", json=[1])
print(second.json(), calls, second.request.content)

# %%
class Token(httpx.Auth):
    def auth_flow(self, request):
        request.headers["T"] = "t"
        yield request
with httpx.Client(transport=transport, auth=Token()) as c:
    print(c.get("http://zoo/3").request.headers["T"], h["x-b"])

# %%
# raises: HTTPStatusError
httpx.Response(500, request=r.request).raise_for_status()
