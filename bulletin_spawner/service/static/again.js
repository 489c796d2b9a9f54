// Looks whether the page is there by now, and opens it then: of a login that broke off, the first page.
const EVERY_MS = 3000;
const page = location.pathname.endsWith("/oauth_callback") ? new URL("./", location.href).href : location.href;

/** Whether an answer is a page of the service, though it be one that says that the pool is away, or the way to log in. */
function isThere(answer) {
  const isOurs = answer.headers.has("Content-Security-Policy"); // of what the proxy says by itself it is not
  return answer.status < 500 || (isOurs && !answer.headers.has("Retry-After"));
}

async function look() {
  try {
    if (isThere(await fetch(page, { cache: "no-store", redirect: "manual" }))) return location.replace(page);
  } catch {
    // nobody answers at all
  }
  setTimeout(look, EVERY_MS);
}
setTimeout(look, EVERY_MS);
