// *Admin*: what admins of the pool do to all of it: empty a node, tell everybody something, take usage to a spreadsheet.
import { AnnouncementForm } from "./announcements";
import { NodesToDrain } from "./drains";
import { UsageDownload } from "./usage_download";

export function AdminPage() {
  // The API refuses who is none: what is written here is so that nobody tries in vain.
  if (document.body.dataset["role"] !== "admin") return <section><p class="empty">This page is for admins of the pool.</p></section>;
  return (
    <>
      <AnnouncementForm />
      <NodesToDrain />
      <UsageDownload />
    </>
  );
}
