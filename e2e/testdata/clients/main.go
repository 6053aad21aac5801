// Launches a workspace by the client that oapi-codegen generates, waits until it runs and
// prints its ID.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	project, err := strconv.ParseInt(os.Getenv("WEIR_PROJECT"), 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	client, err := NewClientWithResponses(os.Getenv("WEIR_URL")+"/api/v1", WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Getenv("WEIR_TOKEN"))
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	launched, err := client.LaunchWorkspaceWithResponse(ctx, nil, LaunchInput{ProjectId: project, Name: new("go"), Request: &LaunchParameters{
		Gpus: new(int64(1)), Cores: new(int64(50)), GpuMemoryMib: new(int64(8192)), CpuMilli: new(int64(2000)), MemoryMib: new(int64(512))}})
	if err != nil || launched.JSON201 == nil {
		log.Fatalf("launch: %v %s", err, launched.Body)
	}
	for id := launched.JSON201.Id; ; time.Sleep(200 * time.Millisecond) {
		w, err := client.GetWorkspaceWithResponse(ctx, id, nil)
		if err != nil || w.JSON200 == nil {
			log.Fatalf("workspace: %v %s", err, w.Body)
		}
		switch w.JSON200.State {
		case WorkspaceDetailStateRunning:
			fmt.Println(id)
			return
		case WorkspaceDetailStateFailed, WorkspaceDetailStateStopped:
			log.Fatalf("the workspace is %s", w.JSON200.State)
		}
	}
}
