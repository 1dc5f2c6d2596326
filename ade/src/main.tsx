import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/agents.css";
import "./styles/chat.css";
import "./styles/memory.css";
import "./styles/screens.css";
import "./styles/figures.css";

const root = document.getElementById("root");
if (root) createRoot(root).render(<StrictMode><App /></StrictMode>);
