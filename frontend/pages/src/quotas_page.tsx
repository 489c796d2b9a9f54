// *Quotas*: the quota file as forms, each setting with what it means; a preview, then in force; who changed what; undo.
import { useMemo, useRef, useState } from "preact/hooks";
import { ask } from "./api";
import type { ProjectChoice, ProjectsView, QuotaFileReport, QuotaLog, QuotaPreview, QuotasEdited, SettingEdit } from "./api_types";
import { First } from "./first_rows";
import { useKeptFocus } from "./kept_focus";
import { useLive } from "./live";
import { OwnQuotas } from "./own_quotas";
import { Section, Table, Waiting } from "./parts";
import { changedMeanwhile, sayNewer, settingErrors } from "./quota_refusals";
import { inTree } from "./project_tree";
import { type Kind, type Path, TABLES, type Value, isTable, keyOf, kindAt, pathOf, readValue, settingsInside, showUnset, showValue } from "./quota_schema";
import { WHY_SCALED, sayScaled, showDuration, showMomentAt } from "./words";

type Drafts = Record<string, Value>;
const LOOK_AGAIN_MS = 700;
/** So many changes of a version are shown at first. */
const CHANGES = 5;

interface Editing {
  schema: Kind;
  saved: Record<string, Value>;
  drafts: Drafts;
  errors: Record<string, string>;
  /** It is what a lead may change, who takes out nothing that is in the file. */
  isLeads: boolean;
  /** What of its guarantee each project has now. */
  standing: ProjectChoice[];
  set: (path: Path, value: Value | undefined) => void;
}

export function QuotasPage() {
  return document.body.dataset["role"] === "user" ? <OwnQuotas /> : <QuotaFile />;
}

function QuotaFile() {
  const file = useLive<QuotaFileReport>("/quotas", 5_000);
  const log = useLive<QuotaLog>("/quotas/versions", 15_000);
  const [seen, setSeen] = useState<QuotaFileReport>();
  const shown = seen ?? file.data;
  const refresh = () => {
    setSeen(undefined);
    file.refresh();
    log.refresh();
  };
  return (
    <>
      {shown ? (
        <Editor report={shown} latest={file.data ?? shown} onKeep={() => setSeen((old) => old ?? shown)} onStale={file.refresh} onMade={refresh} />
      ) : (
        !file.problem && <Waiting what="Reading the quota file …" />
      )}
      {log.data && shown && <History log={log.data} version={file.data?.version ?? shown.version} onMade={refresh} />}
    </>
  );
}

function Editor(props: { report: QuotaFileReport; latest: QuotaFileReport; onKeep: () => void; onStale: () => void; onMade: () => void }) {
  const { report } = props;
  const [drafts, setDrafts] = useState<Drafts>({});
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [why, setWhy] = useState("");
  const [preview, setPreview] = useState<QuotaPreview>();
  const [said, setSaid] = useState<string[]>([]);
  const [isBusy, setBusy] = useState(false);
  const schema = useMemo(() => JSON.parse(report.schema) as Kind, [report.schema]);
  const saved = useMemo(() => Object.fromEntries(report.settings.map((one) => [keyOf(one.path), one.value])), [report.settings]);
  const set = (path: Path, value: Value | undefined) => {
    props.onKeep();
    setPreview(undefined);
    setSaid([]);
    const key = keyOf(path);
    setErrors((old) => Object.fromEntries(Object.entries(old).filter(([one]) => one !== key)));
    setDrafts((old) => {
      const isInside = (one: string) => value === null && one.startsWith(`${key}\u0001`); // goes with what is taken out
      const rest = Object.fromEntries(Object.entries(old).filter(([one]) => one !== key && !isInside(one)));
      if (value === undefined) return rest;
      const there = Object.keys(saved).filter((one) => one === key || one.startsWith(`${key}\u0001`));
      const isSame = value === null ? there.length === 0 : JSON.stringify(value) === JSON.stringify(saved[key]);
      return isSame ? rest : { ...rest, [key]: value };
    });
  };
  const edits = Object.entries(drafts).map(([key, value]) => ({ path: pathOf(key), value }));
  const start = () => {
    setDrafts({});
    setErrors({});
    setPreview(undefined);
    setWhy("");
    props.onMade();
  };
  const notMade = (error: unknown) => {
    const wrong = settingErrors(error);
    const newer = changedMeanwhile(error);
    if (wrong) {
      setErrors(Object.fromEntries(wrong.map((one) => [keyOf(one.path), one.sentence])));
      setSaid(["Nothing was changed.", ...wrong.map((one) => one.sentence)]);
    } else if (newer) {
      setSaid(sayNewer(newer));
      props.onStale();
    } else {
      setSaid([error instanceof Error ? error.message : String(error)]);
    }
  };
  const doing = async (work: () => Promise<void>) => {
    setBusy(true);
    try {
      await work();
    } catch (error) {
      notMade(error);
    }
    setBusy(false);
  };
  const look = () =>
    doing(async () => {
      setSaid(["Playing the last week …"]);
      for (;;) {
        const answer = await ask<QuotaPreview>("/quotas/previews", "POST", { edits, version: report.version });
        if (answer.state !== "working") {
          setSaid([]);
          return setPreview(answer);
        }
        await new Promise((done) => window.setTimeout(done, LOOK_AGAIN_MS));
      }
    });
  const save = (version: string) =>
    doing(async () => {
      const answer = await ask<QuotasEdited>("/quotas/edits", "POST", { edits, version, why });
      start();
      setSaid(["In force.", ...answer.changes, ...answer.warnings.map((one) => `Note: ${one}`)]);
    });
  const projects = useLive<ProjectsView>("/projects", 15_000);
  const editing: Editing = { schema, saved, drafts, errors, isLeads: report.projects !== null, standing: projects.data?.projects ?? [], set };
  const isOld = props.latest.version !== report.version;
  const isOff = isBusy || edits.length === 0;
  return (
    <>
      {report.obstacle && <p class="problem" role="alert">{report.obstacle}</p>}
      {report.errors.map((one) => <p class="problem" role="alert">Not in force: {one}</p>)}
      {TABLES.filter((one) => !report.projects || one.name === "projects").map((one) => (
        <Section key={one.name} title={one.title} note={`${kindAt(schema, [one.name])?.description ?? ""}${one.name === "projects" && editing.standing.some((each) => each.promised_milli !== null) ? ` The pool cannot keep all that is guaranteed: ${WHY_SCALED}.` : ""}${editing.isLeads ? " Of those that you lead you set user_limit and default_qos, and more of those inside them." : ""}`}>
          {one.isNamed ? (
            <Things path={[one.name]} one={one.one} editing={editing} />
          ) : (
            <Settings path={[one.name]} editing={editing} />
          )}
        </Section>
      ))}
      <section class={edits.length === 0 && said.length === 0 ? "changes" : "changes some"} aria-labelledby="changes">
        <h2 id="changes">{edits.length === 0 ? "No changes" : edits.length === 1 ? "1 change" : `${edits.length} changes`}</h2>
        <ul class="plain">{edits.map((one) => <li key={keyOf(one.path)}><Change edit={one} was={saved[keyOf(one.path)]} onDrop={() => set(one.path, undefined)} /></li>)}</ul>
        {isOld && <p class="warning" role="status">The quota file has changed since you began; it is version {props.latest.version} now.</p>}
        {preview && <Preview preview={preview} />}
        <div class="act">
          <label>Why <input type="text" maxLength={256} value={why} onInput={(event) => setWhy(event.currentTarget.value)} /></label>
          <Deed text="Preview" isOff={isOff} go={look} />
          <Deed text="Save" isOff={isOff} go={() => save(report.version)} />
          {isOld && <Deed text="Save on top of the new version" isOff={isOff} go={() => save(props.latest.version)} />}
          <Deed text="Discard" isOff={isOff} go={start} />
        </div>
        <div role="status">{said.map((one) => <p key={one}>{one}</p>)}</div>
      </section>
    </>
  );
}

/** A button that keeps the focus while there is nothing for it to do. */
function Deed({ text, isOff, go }: { text: string; isOff: boolean; go: () => void }) {
  return <button type="button" aria-disabled={isOff} onClick={() => !isOff && go()}>{text}</button>;
}

/** The named things of a table: each with its settings, and a place to add one. */
function Things({ path, one, editing }: { path: Path; one: string; editing: Editing }) {
  const [name, setName] = useState("");
  const [added, setAdded] = useState<string[]>([]);
  const depth = path.length;
  const keys = [...Object.keys(editing.saved), ...Object.keys(editing.drafts)].map(pathOf);
  const inside = keys.filter((key) => key.length > depth && path.every((part, at) => key[at] === part)).map((key) => key[depth]!);
  const given = Object.keys(kindAt(editing.schema, path)?.properties ?? {});
  const parentOf = (each: string) => showValue(editing.drafts[keyOf([...path, each, "parent"])] ?? editing.saved[keyOf([...path, each, "parent"])]);
  const names = inTree([...new Set([...given, ...inside, ...added])], parentOf);
  const about = (each: string) => {
    const inProject = parentOf(each);
    return inProject ? ` (in ${inProject})` : given.includes(each) && !inside.includes(each) ? " (as it comes with Bulletin)" : "";
  };
  const set = settingsInside({ ...editing.saved, ...editing.drafts }, path);
  const scaled = new Map(path[0] === "projects" ? editing.standing.filter((one) => one.promised_milli !== null).map((one) => [one.project, sayScaled(one.guaranteed_milli)]) : []);
  const told = (each: string) => [set.get(each)?.join(", "), scaled.get(each)].filter(Boolean).join(". ");
  const isWrong = (at: Path) => Object.keys(editing.errors).some((key) => key === keyOf(at) || key.startsWith(`${keyOf(at)}\u0001`));
  const isSaved = (at: Path) => Object.keys(editing.saved).some((key) => key.startsWith(`${keyOf(at)}\u0001`));
  const isPlain = !isTable(kindAt(editing.schema, [...path, "x"]) ?? {});
  return (
    <>
      {names.map(({ name: each, depth: indent }) =>
        isPlain ? (
          <Field key={each} path={[...path, each]} editing={editing} />
        ) : (
          <details key={each} style={{ marginLeft: `${indent * 1.25}rem` }} open={added.includes(each) || isWrong([...path, each])}>
            <summary>{each}{about(each)} <small>{told(each)}</small></summary>
            <Settings path={[...path, each]} editing={editing} />
            {inside.includes(each) && (!editing.isLeads || !isSaved([...path, each])) && (
              <button type="button" class="quiet" onClick={() => editing.set([...path, each], null)}>Take out {each}</button>
            )}
          </details>
        ),
      )}
      <form class="act" onSubmit={(event) => {
        event.preventDefault();
        if (name.trim()) setAdded([...added, name.trim()]);
        setName("");
      }}>
        <label>New {one} <input type="text" maxLength={255} value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
        <button type="submit" class="quiet">Add {one}</button>
      </form>
    </>
  );
}

function Settings({ path, editing }: { path: Path; editing: Editing }) {
  const kind = kindAt(editing.schema, path);
  const own = editing.errors[keyOf(path)];
  return (
    <div class="settings">
      {own && <p class="problem">{own}</p>}
      {Object.entries(kind?.properties ?? {}).map(([name, each]) => {
        const at = [...path, name];
        const found = kindAt(editing.schema, at) ?? each;
        if (!isTable(found)) return <Field key={name} path={at} editing={editing} />;
        return (
          <fieldset key={name}>
            <legend>{name}</legend>
            <p class="note">{found.description}</p>
            <Things path={at} one={name === "node_pools" ? "part" : "window"} editing={editing} />
          </fieldset>
        );
      })}
    </div>
  );
}

function Field({ path, editing }: { path: Path; editing: Editing }) {
  const key = keyOf(path);
  const kind = kindAt(editing.schema, path) ?? {};
  const value = key in editing.drafts ? editing.drafts[key] : editing.saved[key];
  const [typed, setTyped] = useState<string>();
  const name = path[path.length - 1]!;
  const error = editing.errors[key];
  const id = `f-${path.join("-")}`;
  const change = (text: string) => editing.set(path, text === "" ? (key in editing.saved ? null : undefined) : readValue(kind, text));
  const choices = kind.enum ?? (kind.type === "boolean" ? ["true", "false"] : undefined);
  const described = { "aria-describedby": `${id}-help`, "aria-invalid": Boolean(error), "aria-label": path.join(" ") };
  return (
    <div class="field">
      <label for={id}>{name}</label>
      {choices ? (
        <select id={id} {...described} value={showValue(value)} onChange={(event) => change(event.currentTarget.value)}>
          <option value="">not set</option>
          {choices.map((one) => <option key={one} value={one}>{one}</option>)}
        </select>
      ) : (
        <input id={id} type="text" {...described} placeholder={showUnset(kind)} value={typed ?? showValue(value)}
          onInput={(event) => {
            setTyped(event.currentTarget.value);
            change(event.currentTarget.value);
          }}
          onBlur={() => setTyped(undefined)} />
      )}
      <p class="note" id={`${id}-help`}>
        {error && <strong class="warning">{error} </strong>}
        {kind.description}
      </p>
    </div>
  );
}

function Change(props: { edit: SettingEdit; was: Value | undefined; onDrop: () => void }) {
  const name = props.edit.path.join(" ");
  const will = props.edit.value === null ? "taken out" : showValue(props.edit.value);
  const drop = useRef<HTMLButtonElement>(null);
  useKeptFocus(drop);
  return (
    <>
      <strong>{name}</strong>: {showValue(props.was) || "not set"} → {will}{" "}
      <button type="button" class="quiet" ref={drop} aria-label={`Drop the change of ${name}`} onClick={props.onDrop}>Drop</button>
    </>
  );
}

function Preview({ preview }: { preview: QuotaPreview }) {
  return (
    <div class="preview">
      <h3>What the last week would have been</h3>
      <p>{preview.sentence}</p>
      {preview.by_project && <p>{preview.by_project}</p>}
      {preview.warnings.map((one) => <p key={one} class="warning">{one}</p>)}
      {preview.rows.length > 0 && (
        <Table isWide label="Waits by project" columns={["Project", { name: "Cells", isNumber: true }, { name: "Waits as it is", isNumber: true }, { name: "Waits with the change", isNumber: true }]}>
          {preview.rows.map((one) => (
            <tr key={one.project}>
              <td>{one.project}</td>
              <td class="number">{one.cells}</td>
              <td class="number">{showDuration(one.waited_now_ms)}</td>
              <td class="number">{showDuration(one.waited_then_ms)}</td>
            </tr>
          ))}
        </Table>
      )}
      {preview.diff && <pre class="diff">{preview.diff}</pre>}
    </div>
  );
}

/** What was changed: the first of it at once, since a file that is written anew changes hundreds of settings. */
function Changes({ all }: { all: string[] }) {
  const more = all.slice(CHANGES);
  return (
    <>
      {all.slice(0, CHANGES).join("; ")}
      {more.length > 0 && <details><summary>and {more.length} more</summary>{more.join("; ")}</details>}
    </>
  );
}

function History(props: { log: QuotaLog; version: string; onMade: () => void }) {
  const [said, setSaid] = useState<string[]>([]);
  const undo = async () => {
    try {
      const answer = await ask<QuotasEdited>("/quotas/undo", "POST", { version: props.version });
      setSaid(["Undone.", ...answer.changes]);
    } catch (error) {
      setSaid([error instanceof Error ? error.message : String(error)]);
    }
    props.onMade();
  };
  return (
    <Section title="Who changed what">
      <div class="act">
        <button type="button" disabled={props.log.versions.length === 0} onClick={undo}>Undo the last change</button>
        <span role="status">{said.join(" ")}</span>
      </div>
      {props.log.versions.length > 0 && (
        <First of="Who changed what" all={props.log.versions}>{(shown) => (
        <Table isWide label="Versions of the quota file" columns={["When", "Who", "Why", "What"]}>
          {shown.map((one) => (
            <tr key={`${one.version}-${one.at_ms}`} class={one.is_in_force ? "mine" : ""}>
              <td>{showMomentAt(one.at_ms)}</td>
              <td>{one.by}</td>
              <td class="reason">{one.why}</td>
              <td class="reason"><Changes all={one.changes} />{one.is_in_force ? " (in force)" : ""}</td>
            </tr>
          ))}
        </Table>
        )}</First>
      )}
    </Section>
  );
}
