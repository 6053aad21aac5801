// Launches a workspace by the client of openapi-fetch, with the types that
// openapi-typescript generates, waits until it runs and prints its ID.
import createClient from "openapi-fetch";
import { setTimeout } from "node:timers/promises";
import type { components, paths } from "./schema.js";

const { WEIR_URL, WEIR_TOKEN, WEIR_PROJECT } = process.env;
const client = createClient<paths>({ baseUrl: `${WEIR_URL}/api/v1`, headers: { Authorization: `Bearer ${WEIR_TOKEN}` } });

const body: components["schemas"]["LaunchInput"] = {
	project_id: Number(WEIR_PROJECT),
	name: "typescript",
	request: { gpus: 1, cores: 50, gpu_memory_mib: 8192, cpu_milli: 2000, memory_mib: 512 },
};
const launched = await client.POST("/workspaces", { body });
if (launched.error) throw new Error(launched.error.detail);

for (const deadline = Date.now() + 120_000; Date.now() < deadline; await setTimeout(200)) {
	const { data, error } = await client.GET("/workspaces/{id}", { params: { path: { id: launched.data.id } } });
	if (error) throw new Error(error.detail);
	if (data.state === "running") {
		console.log(data.id);
		process.exit(0);
	}
	if (data.state === "failed" || data.state === "stopped") throw new Error(`the workspace is ${data.state}`);
}
throw new Error("the workspace does not run");
