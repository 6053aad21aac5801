package main

import (
	"github.com/spf13/cobra"

	"weir/handlers"
)

// newOpenAPICommand prints the API's description, docs/openapi.json.
func newOpenAPICommand() *cobra.Command {
	return &cobra.Command{Use: "openapi", Hidden: true, Short: "Print the OpenAPI document", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			doc, err := handlers.OpenAPI()
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(append(doc, '\n'))
			return err
		}}
}
