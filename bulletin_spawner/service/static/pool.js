// Keeps the pool's page up to date: fetches itself, and shows what changed.
// A cookie counts in a fetch only together with the token that the page itself carries (JupyterHub's XSRF check).
const EVERY_MS = 2000;
const live = document.getElementById("live");
live.parentElement.hidden = false;

async function refresh() {
  if (!live.checked || document.hidden || document.getElementById("pool").contains(document.activeElement)) return;
  try {
    const headers = { "X-XSRFToken": document.body.dataset.xsrf };
    const answer = await fetch(location.href, { cache: "no-store", redirect: "error", headers });
    const next = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("pool");
    const now = document.getElementById("pool");
    if (next && next.innerHTML !== now.innerHTML) now.innerHTML = next.innerHTML;
  } catch {
    document.getElementById("pool").innerHTML =
      '<p class="problem" role="alert">The hub does not answer, or you are logged out. <a href="">Look again</a></p>';
  }
}

async function forever() {
  await refresh();
  setTimeout(forever, EVERY_MS);
}
setTimeout(forever, EVERY_MS);
