package cli

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
	"weir/handlers"
	"weir/pool/providers"
)

func newAuthorizeCommand() *cobra.Command {
	var name, owner string
	cmd := remoteCommand("authorize GPU-CODE", "Create an authorization code for the GPU code of a machine, and print it", cobra.ExactArgs(1),
		func(s *session, args []string) error {
			in := providers.AuthorizeInput{GPUCode: args[0], Name: name}
			if _, ok := providers.ParseGPUCode(in.GPUCode); !ok {
				return config.Usagef("%q must be the 16 letters and digits that “weir agent” prints on the machine", in.GPUCode)
			}
			if owner != "" {
				var err error
				if in.OwnerID, err = s.accountID(owner); err != nil {
					return err
				}
			}
			return s.authorize(in)
		})
	cmd.Flags().StringVar(&name, "name", "", "`NAME` of the provider (default: the name of the machine)")
	cmd.Flags().StringVar(&owner, "owner", "", "`EMAIL` or ID of the owner (default: unchanged; of a new machine, you)")
	return cmd
}

// authorize prints the code to the output, and the instructions to the error
// output.
func (s *session) authorize(in providers.AuthorizeInput) error {
	var made handlers.NewAuthorization
	err := send(s, http.MethodPost, "/pool/authorizations", in, "", func(t *table, now handlers.NewAuthorization) {
		made = now
		t.line("%s", made.Code)
	})
	if err != nil || s.json {
		return err
	}
	fmt.Fprintf(s.errOut, "Valid until %s, once, on the machine with this GPU code:\n  weir agent --server %s --code CODE\n",
		moment(made.ExpiresAt), s.server)
	return nil
}
