// What several pages are made of.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ask } from "./api";
import { useKeptFocus } from "./kept_focus";

/** A part of a page under a heading. */
export function Section(props: { title: string; note?: string; children: ComponentChildren }) {
  const id = props.title.toLowerCase().replace(/\W+/g, "-");
  const place = useRef<HTMLElement>(null);
  useEffect(() => {
    if (location.hash === `#${id}`) place.current?.scrollIntoView(); // it was not there yet when the browser looked for it
  }, []);
  return (
    <section ref={place} aria-labelledby={id}>
      <h2 id={id}>{props.title}</h2>
      {props.note && <p class="note">{props.note}</p>}
      {props.children}
    </section>
  );
}

/** Stands where something is about to be shown. */
export function Waiting(props: { what: string }) {
  return <p class="empty" aria-busy="true">{props.what}</p>;
}

type Column = string | { name: string; isNumber?: boolean; isOptional?: boolean };

/** A table. Where it is too wide it scrolls in itself; one of many columns is a list of cards on a phone instead. */
export function Table(props: { label: string; columns: Column[]; isWide?: boolean; children: ComponentChildren }) {
  const table = useRef<HTMLTableElement>(null);
  const columns = props.columns.map((column) => (typeof column === "string" ? { name: column } : column));
  useLayoutEffect(() => {
    // Each cell carries the name of its column, which stands before it on a card. What is no longer laid out as a table
    // browsers take for none: said by its role, it stays one.
    for (const row of (props.isWide && table.current?.rows) || []) {
      row.setAttribute("role", "row");
      [...row.cells].forEach((cell, at) => {
        cell.setAttribute("role", cell.tagName === "TH" ? "columnheader" : "cell");
        if (row.cells.length === columns.length) cell.setAttribute("data-column", columns[at]?.name ?? "");
        cell.toggleAttribute("data-none", cell.textContent === "—");
      });
    }
  });
  const group = props.isWide ? { role: "rowgroup" as const } : {};
  return (
    <div class="scroll" role="region" aria-label={props.label} tabIndex={0}>
      <table ref={table} {...(props.isWide ? { class: "wide", role: "table" as const } : {})}>
        <thead {...group}>
          <tr>
            {columns.map(({ name, isNumber = false, isOptional = false }) => {
              const kind = `${isNumber ? "number" : ""} ${isOptional ? "optional" : ""}`.trim();
              return name ? <th scope="col" class={kind}>{name}</th> : <td />;
            })}
          </tr>
        </thead>
        <tbody {...group}>{props.children}</tbody>
      </table>
    </div>
  );
}

/** A small bar with its value in words beside it. */
export function Bar(props: { share: number; text: string; label: string; kind?: string }) {
  const share = Math.max(0, Math.min(1, props.share));
  return (
    <span class="meter">
      <span class={`bar ${props.kind ?? ""}`} aria-hidden="true"><span style={{ width: `${share * 100}%` }} /></span>
      <span><span class="hidden">{props.label}: </span>{props.text}</span>
    </span>
  );
}

/** A button that does something to a cell, asks before where that cannot be undone, and says what came of it. */
export function Act(props: {
  text: string;
  about: string;
  path: string;
  method?: string;
  body?: unknown;
  confirm?: string;
  done: (answer: { what?: string }) => string;
  onDone: () => void;
}) {
  const [state, setState] = useState<"idle" | "asking" | "busy">("idle");
  const [said, setSaid] = useState("");
  const first = useRef<HTMLButtonElement>(null);
  const again = useRef<HTMLButtonElement>(null);
  const wasAsked = useRef(false);
  const whole = useRef<HTMLSpanElement>(null);
  useKeptFocus(whole);
  useLayoutEffect(() => {
    // Whoever uses the keyboard goes on where they were: the button that had the focus is not there any more.
    if (state === "asking") again.current?.focus();
    else if (wasAsked.current) first.current?.focus();
    wasAsked.current = state === "asking";
  }, [state]);
  const go = async () => {
    setState("busy");
    try {
      setSaid(props.done(await ask<{ what?: string }>(props.path, props.method ?? "POST", props.body ?? (props.method === "DELETE" ? undefined : {}))));
      props.onDone();
    } catch (error) {
      setSaid(error instanceof Error ? error.message : String(error));
    }
    setState("idle");
  };
  const leaveIt = () => setState("idle");
  return (
    <span class="act" ref={whole} onKeyDown={(event) => event.key === "Escape" && state === "asking" && leaveIt()}>
      {state === "asking" ? (
        <>
          <button type="button" class="danger" ref={again} onClick={go}>{props.confirm}</button>
          <button type="button" class="quiet" onClick={leaveIt}>Leave it</button>
        </>
      ) : (
        <button type="button" class="quiet" ref={first} aria-disabled={state === "busy"} aria-label={`${props.text}: ${props.about}`} onClick={() => state === "idle" && (props.confirm ? setState("asking") : void go())}>
          {props.text}
        </button>
      )}
      <span role="status" class="note">{said}</span>
    </span>
  );
}

/** Copies a command; where the browser does not let it, the command stands there to be marked. */
export function Copy(props: { text: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(props.text);
      setCopied(true);
    } catch {
      setCopied(false);
    }
  };
  return (
    <span class="copy">
      <code>{props.text}</code>
      <button type="button" class="quiet" onClick={copy} aria-label={`Copy ${props.text}`}>Copy</button>
      <span role="status" class="note">{isCopied ? "copied" : ""}</span>
    </span>
  );
}
