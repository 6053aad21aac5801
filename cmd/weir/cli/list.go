package cli

import (
	"fmt"
	"net/url"

	"github.com/spf13/cobra"
)

// listCommand lists what a person and the members of their projects have; live is the state of what
// has not ended.
func listCommand[T any](name, live string, write func(*table, []T)) *cobra.Command {
	var state string
	var project int64
	cmd := remoteCommand(name, "List your "+name+" and those of your projects", cobra.NoArgs, func(s *session, _ []string) error {
		query := url.Values{"state": {state}}
		if project != 0 {
			query.Set("project_id", fmt.Sprint(project))
		}
		list, raw, err := fetchAll[T](s, s.client, "/"+name, query)
		if err != nil {
			return err
		}
		return s.show(raw, func(t *table) { write(t, list) })
	})
	cmd.Flags().StringVar(&state, "state", live, "`STATE` of the "+name+": "+live+", ended or all")
	cmd.Flags().Int64Var(&project, "project", 0, "only "+name+" of the project with this `ID`")
	return cmd
}
