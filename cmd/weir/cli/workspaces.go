package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
	"weir/handlers"
	"weir/models"
	"weir/workspaces"
)

func newWorkspacesCommand() *cobra.Command {
	cmd := listCommand("workspaces", "active", workspacesTable)
	cmd.AddCommand(newStopWorkspacesCommand())
	return cmd
}

func workspacesTable(t *table, list []handlers.Workspace) {
	t.section("ID", "NAME", "STATE", "GPUS", "CORES", "PROJECT", "USER", "REQUESTED", "REASON")
	for _, w := range list {
		t.row(w.ID, w.Name, w.State, w.Demand.GPUs, w.Demand.Cores, w.Project, w.User, moment(w.RequestedAt), w.Reason)
	}
}

func newStopWorkspacesCommand() *cobra.Command {
	var own bool
	var reason string
	cmd := remoteCommand("stop [WORKSPACE...]", "Stop workspaces", cobra.ArbitraryArgs, func(s *session, args []string) (err error) {
		if own == (len(args) > 0) {
			return config.Usagef("name workspaces by their IDs, or set --all")
		}
		ids, err := workspaceIDs(args)
		if own {
			ids, err = s.ownWorkspaces()
		}
		if err != nil {
			return err
		}
		all := handlers.WorkspacesStopped{Stopped: []int64{}, Failed: []handlers.StopFailure{}}
		for part := range slices.Chunk(ids, workspaces.MaxStopped) {
			res, err := s.call(s, http.MethodPost, "/workspaces/stop", handlers.WorkspacesStop{IDs: part, Reason: reason}, "")
			if err != nil {
				return err
			}
			var stopped handlers.WorkspacesStopped
			if err := decode(s.client, res.body, &stopped); err != nil {
				return err
			}
			all.Stopped, all.Failed = append(all.Stopped, stopped.Stopped...), append(all.Failed, stopped.Failed...)
		}
		return s.showStopped(all)
	})
	cmd.Flags().BoolVar(&own, "all", false, "all of your workspaces that have not ended")
	cmd.Flags().StringVar(&reason, "reason", "", "`REASON` that their owners are told")
	return cmd
}

// workspaceIDs are the workspaces that arguments name.
func workspaceIDs(args []string) (ids []int64, err error) {
	for _, arg := range args {
		id, err := parseID(arg, "workspace")
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// ownWorkspaces are the person's own workspaces that have neither ended nor begun to stop.
func (s *session) ownWorkspaces() (ids []int64, err error) {
	me, _, err := fetch[handlers.User](s, s.client, "/me")
	if err != nil {
		return nil, err
	}
	list, _, err := fetchAll[handlers.Workspace](s, s.client, "/workspaces", url.Values{"state": {"active"}, "user_id": {fmt.Sprint(me.ID)}})
	for _, w := range list {
		if w.State != models.StateStopping {
			ids = append(ids, w.ID)
		}
	}
	return ids, err
}

// showStopped shows what stops; what could not be stopped is an error.
func (s *session) showStopped(v handlers.WorkspacesStopped) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	err = s.show(raw, func(t *table) {
		for _, id := range v.Stopped {
			t.line("workspace %d is stopping", id)
		}
		if len(v.Stopped)+len(v.Failed) == 0 {
			t.line("no workspace to stop")
		}
	})
	for _, f := range v.Failed {
		err = errors.Join(err, fmt.Errorf("workspace %d was not stopped: %s", f.ID, clean(f.Reason)))
	}
	return err
}
