// *Admin*: what admins of the pool do to all of it: empty a node, tell everybody something.
import { AnnouncementForm } from "./announcements";
import { NodesToDrain } from "./drains";

export function AdminPage() {
  // The API refuses who is none: what is written here is so that nobody tries in vain.
  if (document.body.dataset["role"] !== "admin") return <section><p class="empty">This page is for admins of the pool.</p></section>;
  return (
    <>
      <AnnouncementForm />
      <NodesToDrain />
    </>
  );
}
