// The REST API below this page. A cookie counts only together with the token that the page carries (JupyterHub's XSRF).
import type { ApiProblem } from "./api_types";
import { countRenewals, noteServed, renewLogin } from "./login_renewal";

const BASE = new URL("./api/v1", document.baseURI).href;
/** What is said where no answer comes, and where one comes that is not the service's. */
export const UNREACHABLE = "The hub cannot be reached: it may be starting again, or you are not connected to it.";
const SERVICE_AWAY = "The service behind these pages does not answer: it may be starting again.";
/** What is said where the hub knows nobody by this browser's cookie any more. */
export const LOGGED_OUT = "You are logged out.";

export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly problem: ApiProblem,
  ) {
    super(problem.sentence);
  }

  /** Whether the service itself has said that there is nothing to see: what was seen before goes. */
  get isFinal(): boolean {
    return this.problem.code !== "away" && (this.status === 403 || this.status === 404);
  }
}

/** Ask the API; `path` begins with a slash. Throws Refused with a sentence for people. */
export async function ask<Answer>(path: string, method = "GET", body?: unknown): Promise<Answer> {
  const answer = await send(path, { method, body });
  return (await answer.json()) as Answer;
}

export interface Asked {
  method?: string;
  body?: unknown;
  etag?: string;
  /** An answer that does not come in this time does not come. */
  patienceMs?: number;
}

/** Send what is asked; with the login renewed where that can be done without anybody. Throws Refused. */
export async function send(path: string, asked: Asked = {}): Promise<Response> {
  const before = countRenewals();
  try {
    return await sendOnce(path, asked);
  } catch (error) {
    // Whoever is not known was not served: it is asked again, and nothing is done twice.
    if (error instanceof Refused && error.problem.is_logged_out && (await isKnownAgain(error.problem, before))) return sendOnce(path, asked);
    throw error;
  }
}

/** Renew the login, unless that was done after `before`. Who has logged out of the hub stays so, whatever would log them in. */
async function isKnownAgain(problem: ApiProblem, before: number): Promise<boolean> {
  return countRenewals() !== before || (!problem.is_session_over && (await renewLogin()));
}

async function sendOnce(path: string, { method = "GET", body, etag, patienceMs }: Asked): Promise<Response> {
  const headers: Record<string, string> = { "X-XSRFToken": document.body.dataset["xsrf"] ?? "" };
  if (etag) headers["If-None-Match"] = etag;
  const options: RequestInit = { method, headers, cache: "no-store", redirect: "error" };
  if (patienceMs) options.signal = AbortSignal.timeout(patienceMs);
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let answer: Response;
  try {
    answer = await fetch(BASE + path, options);
  } catch {
    throw new Refused(0, away(UNREACHABLE));
  }
  if (answer.ok || answer.status === 304) {
    noteServed();
    return answer;
  }
  // What is no JSON is the proxy's, or the hub's while it does not know of its service.
  const problem = (await answer.json().catch(() => away(SERVICE_AWAY))) as ApiProblem;
  throw new Refused(answer.status, problem.is_logged_out ? { ...problem, sentence: LOGGED_OUT } : problem);
}

function away(sentence: string): ApiProblem {
  return { code: "away", sentence, is_logged_out: false, is_session_over: false };
}
