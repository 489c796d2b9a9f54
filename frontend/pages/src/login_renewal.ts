// Logging in again without anybody: after a restart the service knows no cookie of before, but the hub still does.
import { type Failure, RenewalPace } from "./renewal_pace";

const pace = new RenewalPace();
let renewing: Promise<boolean> | undefined;
let renewals = 0;

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) pace.see();
});

/** Say how often the login was renewed here: what was asked before the last time may still be refused after it. */
export function countRenewals(): number {
  return renewals;
}

/** Note that the service has served somebody by this login. */
export function noteServed(): void {
  pace.succeed();
}

/** Go to the hub and back as the browser would for this page, and take over the page's new token. What is typed stays. */
export function renewLogin(): Promise<boolean> {
  if (!renewing && !pace.mayTry(performance.now())) return Promise.resolve(false);
  renewing ??= goToTheHub().then((found) => {
    renewing = undefined;
    // A login that the service does not take is none: it counts when somebody is served by it.
    pace.fail(found === "renewed" ? "away" : found, performance.now());
    if (found === "renewed") renewals += 1;
    return found === "renewed";
  });
  return renewing;
}

async function goToTheHub(): Promise<Failure | "renewed"> {
  const shown = document.body.dataset;
  let text: string;
  try {
    // Such a request may follow the hub's redirects within this site as a visit does; it changes nothing.
    const answer = await fetch(location.href, { mode: "no-cors", credentials: "same-origin", cache: "no-store" });
    if (answer.status >= 500) return "away";
    text = await answer.text();
  } catch {
    return "refused"; // the hub is elsewhere, or sends people elsewhere to log in: they do that themselves
  }
  const found = new DOMParser().parseFromString(text, "text/html").body.dataset;
  if (!found["xsrf"] || found["page"] !== shown["page"]) return "refused"; // it is the hub's page for a login
  if (found["user"] !== shown["user"]) {
    location.reload(); // what is shown is another person's
    return "refused";
  }
  shown["xsrf"] = found["xsrf"];
  return "renewed";
}
