// *Quotas* for who may change none: what their projects have, and who may change that.
import type { MeView } from "./api_types";
import { First } from "./first_rows";
import { useLive } from "./live";
import { Project } from "./me_page";
import { Section, Waiting } from "./parts";

export function OwnQuotas() {
  const me = useLive<MeView>("/me", 10_000);
  const view = me.data;
  if (!view) return me.problem ? null : <Waiting what="Looking for your projects …" />;
  return (
    <>
      <Section title="What your projects have" note="To read: leads change what is inside the projects that they lead, and admins all of it.">
        {view.projects.length === 0 ? (
          <p class="empty">No quotas are set for your projects: what is free is yours to use.</p>
        ) : (
          <First of="What your projects have" all={view.projects}>
            {(shown) => <ul class="cards">{shown.map((one) => <Project key={one.project} one={one} word={view.slot_word} />)}</ul>}
          </First>
        )}
      </Section>
      <p>You need more for a while? <a href="./me#ask-for-more">Ask for it on Me</a>: a lead of the project or an admin decides.</p>
    </>
  );
}
