// The REST API below this page. A cookie counts only together with the token that the page carries (JupyterHub's XSRF).
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiProblem } from "./api_types";

const BASE = new URL("./api/v1", document.baseURI).href;
const AWAY = "The hub does not answer, or you are logged out.";
/** What is said where the hub knows nobody by this browser's cookie any more. */
export const LOGGED_OUT = "You are logged out.";

export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly problem: ApiProblem,
  ) {
    super(problem.sentence);
  }
}

/** Ask the API; `path` begins with a slash. Throws Refused with a sentence for people. */
export async function ask<Answer>(path: string, method = "GET", body?: unknown): Promise<Answer> {
  const answer = await send(path, method, body);
  return (await answer.json()) as Answer;
}

async function send(path: string, method: string, body?: unknown, etag?: string): Promise<Response> {
  const headers: Record<string, string> = { "X-XSRFToken": document.body.dataset["xsrf"] ?? "" };
  if (etag) headers["If-None-Match"] = etag;
  const options: RequestInit = { method, headers, cache: "no-store", redirect: "error" };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let answer: Response;
  try {
    answer = await fetch(BASE + path, options);
  } catch {
    throw new Refused(0, { code: "away", sentence: AWAY, is_logged_out: false });
  }
  if (answer.ok || answer.status === 304) return answer;
  const problem = (await answer.json().catch(() => ({ code: "away", sentence: AWAY, is_logged_out: false }))) as ApiProblem;
  throw new Refused(answer.status, problem.is_logged_out ? { ...problem, sentence: LOGGED_OUT } : problem);
}

export interface Live<Answer> {
  data: Answer | undefined;
  /** Why it is not up to date, in a sentence. */
  problem: string;
  /** When `data` came, by the page's clock. */
  atMs: number;
  refresh: () => void;
}

/** Keep an answer of the API up to date while the page is seen: every so often, less often while nothing answers. */
export function useLive<Answer>(path: string | undefined, everyMs: number): Live<Answer> {
  const [state, setState] = useState<{ path: string; data: Answer | undefined; problem: string; atMs: number }>();
  const wake = useRef<() => void>(() => undefined);
  useEffect(() => {
    if (path === undefined) return;
    let isOver = false;
    let failures = 0;
    let etag = "";
    let timer = 0;
    const look = async () => {
      window.clearTimeout(timer);
      if (!document.hidden) {
        try {
          const answer = await send(path, "GET", undefined, etag);
          if (isOver) return;
          failures = 0;
          etag = answer.headers.get("ETag") ?? "";
          if (answer.status === 304) {
            setState((old) => (old ? { ...old, problem: "", atMs: performance.now() } : old));
          } else {
            const data = (await answer.json()) as Answer;
            if (!isOver) setState({ path, data, problem: "", atMs: performance.now() });
          }
        } catch (error) {
          if (isOver) return;
          failures += 1;
          const sentence = error instanceof Refused ? error.message : AWAY;
          const isFinal = error instanceof Refused && (error.status === 403 || error.status === 404);
          setState((old) => ({
            path,
            data: isFinal || old?.path !== path ? undefined : old.data,
            problem: sentence,
            atMs: performance.now(),
          }));
        }
      }
      if (isOver) return;
      const pause = everyMs * Math.min(10, 1 + failures) * (0.9 + 0.2 * Math.random());
      timer = window.setTimeout(look, pause);
    };
    const shown = () => {
      if (!document.hidden) void look();
    };
    wake.current = () => void look();
    document.addEventListener("visibilitychange", shown);
    void look();
    return () => {
      isOver = true;
      window.clearTimeout(timer);
      document.removeEventListener("visibilitychange", shown);
    };
  }, [path, everyMs]);
  const isOf = state !== undefined && state.path === path;
  return {
    data: isOf ? state.data : undefined,
    problem: isOf ? state.problem : "",
    atMs: isOf ? state.atMs : 0,
    refresh: () => wake.current(),
  };
}
