import { useQuery } from "@tanstack/react-query";
import { api } from "../api/client";

/** A folder of files, which agents may be given. */
export interface Folder {
  id: string;
  name: string;
  description: string | null;
  instructions: string | null;
  created_at: string | null;
  embedding_config?: { handle?: string | null } | null;
}

/** A file in a folder, and how far it has been taken in. */
export interface StoredFile {
  id: string;
  file_name: string;
  original_file_name: string;
  file_size: number;
  created_at: string | null;
  processing_status: "pending" | "parsing" | "embedding" | "completed" | "error";
  error_message: string | null;
  total_chunks: number | null;
  chunks_embedded: number | null;
  content?: string | null;
}

/** A file as an agent has it. */
export interface AgentFile {
  file_id: string;
  folder_id: string;
  is_open: boolean;
}

const MOST = 200;
const POLL_MILLISECONDS = 2_000;

export function useFolders(isWanted = true) {
  return useQuery({
    queryKey: ["folders"],
    enabled: isWanted,
    queryFn: async () => (await api().folders.list({ limit: MOST })).items as unknown as Folder[],
  });
}

export function useAgentFolders(agentId: string) {
  return useQuery({
    queryKey: ["agent-folders", agentId],
    queryFn: async () => (await api().agents.folders.list(agentId, { limit: MOST })).items as unknown as Folder[],
  });
}

/** The files of a folder, asked for again while one of them is being taken in. */
export function useFiles(folderId: string) {
  return useQuery({
    queryKey: ["files", folderId],
    refetchInterval: ({ state }) => (state.data?.some(isUnderway) ? POLL_MILLISECONDS : false),
    queryFn: async () => (await api().folders.files.list(folderId, { limit: MOST })).items as unknown as StoredFile[],
  });
}

export function isUnderway(file: StoredFile): boolean {
  return !["completed", "error"].includes(file.processing_status);
}

/** Which files an agent has open, asked for again and again while they are shown: it opens and closes them itself. */
export function useOpenFiles(agentId: string) {
  return useQuery({
    queryKey: ["agent-files", agentId],
    refetchInterval: POLL_MILLISECONDS,
    queryFn: async () => {
      const page = await api().agents.files.list(agentId, { limit: 500 } as never);
      return (page as unknown as { files: AgentFile[] }).files;
    },
  });
}

export function useFolderAgents(folderId: string) {
  return useQuery({
    queryKey: ["folder-agents", folderId],
    queryFn: async () => (await api().folders.agents.list(folderId, { limit: MOST })) as unknown as string[],
  });
}

/** Returns the text that was found in a file. */
export async function readText(folderId: string, fileId: string): Promise<string> {
  const file = await api().folders.files.retrieve(fileId, { folder_id: folderId, include_content: true });
  return (file as unknown as StoredFile).content ?? "";
}

/** Tries again to take in a file that failed. */
export function takeInAgain(folderId: string, fileId: string): Promise<unknown> {
  return api().post(`/v1/folders/${folderId}/files/${fileId}/retry`, { maxRetries: 0 });
}
