import { Activity, Bot, ChartColumn, Cpu, FolderOpen, KeyRound, LayoutTemplate, type LucideIcon, Plug, Users, Wrench } from "lucide-react";
import type { Right } from "../api/client";

/** Where one may go, for whoever has the right. */
export const PLACES: { to: string; label: string; icon: LucideIcon; needs: Right }[] = [
  { to: "/agents", label: "Agents", icon: Bot, needs: "read_agent" },
  { to: "/runs", label: "Runs", icon: Activity, needs: "read_messages" },
  { to: "/tools", label: "Tools", icon: Wrench, needs: "read" },
  { to: "/mcp", label: "MCP", icon: Plug, needs: "read" },
  { to: "/folders", label: "Folders", icon: FolderOpen, needs: "read" },
  { to: "/templates", label: "Templates", icon: LayoutTemplate, needs: "read" },
  { to: "/groups", label: "Groups", icon: Users, needs: "read" },
  { to: "/models", label: "Models", icon: Cpu, needs: "read" },
  { to: "/usage", label: "Usage", icon: ChartColumn, needs: "read" },
  { to: "/keys", label: "Keys", icon: KeyRound, needs: "own" },
];
