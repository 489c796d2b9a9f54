// Answers of the API that are kept up to date while their page is seen.
import { useEffect, useRef, useState } from "preact/hooks";
import { Refused, UNREACHABLE, send } from "./api";
import { forgetTrouble, reportTrouble } from "./troubles";
import { pauseMs } from "./retry";

const PATIENCE_MS = 10_000;

export interface Live<Answer> {
  data: Answer | undefined;
  /** Why it is not up to date, in a sentence, which stands above the page. */
  problem: string;
  refresh: () => void;
}

/** Keep an answer of the API up to date while the page is seen: every so often, and what it was where nothing answers. */
export function useLive<Answer>(path: string | undefined, everyMs: number): Live<Answer> {
  const [state, setState] = useState<{ path: string; data: Answer | undefined; problem: string }>();
  const wake = useRef<() => void>(() => undefined);
  useEffect(() => {
    if (path === undefined) return;
    const self = Symbol(path);
    let isOver = false;
    let failures = 0;
    let etag = "";
    let timer = 0;
    let asOfMs: number | undefined;
    const succeed = (data?: Answer) => {
      failures = 0;
      asOfMs = Date.now();
      forgetTrouble(self);
      setState((old) => (data !== undefined ? { path, data, problem: "" } : old && { ...old, problem: "" }));
    };
    const fail = (error: unknown) => {
      failures += 1;
      const problem = error instanceof Refused ? error.message : UNREACHABLE;
      const isFinal = error instanceof Refused && error.isFinal;
      if (isFinal) {
        asOfMs = undefined;
        etag = "";
      }
      const isKept = asOfMs !== undefined;
      reportTrouble(self, { sentence: problem, asOfMs, isFinal, look: () => void look() });
      setState((old) => ({ path, data: isKept && old?.path === path ? old.data : undefined, problem }));
    };
    const look = async () => {
      window.clearTimeout(timer);
      if (!document.hidden) {
        try {
          const answer = await send(path, { etag, patienceMs: PATIENCE_MS });
          const data = answer.status === 304 ? undefined : ((await answer.json()) as Answer);
          if (isOver) return;
          etag = answer.headers.get("ETag") ?? "";
          succeed(data);
        } catch (error) {
          if (isOver) return;
          fail(error);
        }
      }
      if (isOver) return;
      window.clearTimeout(timer);
      timer = window.setTimeout(look, pauseMs(everyMs, failures, Math.random()));
    };
    const shown = () => {
      if (!document.hidden) void look();
    };
    wake.current = () => void look();
    document.addEventListener("visibilitychange", shown);
    window.addEventListener("online", shown);
    void look();
    return () => {
      isOver = true;
      window.clearTimeout(timer);
      forgetTrouble(self);
      document.removeEventListener("visibilitychange", shown);
      window.removeEventListener("online", shown);
    };
  }, [path, everyMs]);
  const isOf = state !== undefined && state.path === path;
  return { data: isOf ? state.data : undefined, problem: isOf ? state.problem : "", refresh: () => wake.current() };
}
