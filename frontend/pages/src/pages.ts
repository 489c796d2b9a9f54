// The pages by their names, as bulletin_spawner/service/page_shell.py has them.
import type { ComponentType } from "preact";
import { AdminPage } from "./admin_page";
import { MePage } from "./me_page";
import { NowPage } from "./now_page";
import { ProjectPage } from "./project_page";
import { QuotasPage } from "./quotas_page";

export const PAGES: Record<string, ComponentType> = {
  now: NowPage,
  me: MePage,
  project: ProjectPage,
  quotas: QuotasPage,
  admin: AdminPage,
};
