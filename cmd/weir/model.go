package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
	"weir/handlers"
	"weir/models"
	"weir/workspaces/deployments"
	"weir/workspaces/shard"
	"weir/workspaces/shard/split"
)

// modelCommand is the command line of “weir model”.
type modelCommand struct {
	batch, context int64
	service        string
	presets        string // file; empty: those of the program
	devices        []string
	output         config.Choice
}

func newModelCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "model", Short: "Describe, plan and split models",
		Long: `Describe what a model needs, plan it on devices, write its parts to files and merge them.
A model is a directory with config.json and files that end with .safetensors, or with .onnx,
which can be described and planned only. No weights are loaded. These commands need no server.

Exit codes: 0, done; 1, the model is not valid, or the devices do not have enough memory;
2, the command line is wrong.`}
	cmd.AddCommand(newModelPresetsCommand(), newModelShowCommand(), newModelPlanCommand(), newModelSplitCommand(), newModelMergeCommand())
	return cmd
}

// add adds the flags that commands about a model have in common.
func (m *modelCommand) add(cmd *cobra.Command, planned bool) *cobra.Command {
	m.output = config.Choice{Value: "text", Allowed: []string{"text", "json"}}
	cmd.Flags().Int64Var(&m.batch, "batch", 1, "`SEQUENCES` at once")
	cmd.Flags().Int64Var(&m.context, "context", deployments.DefaultContext, "`TOKENS` of a sequence")
	cmd.Flags().Var(&m.output, "output", "`FORMAT` of the output: text or json")
	if planned {
		cmd.Flags().StringArrayVar(&m.devices, "device", nil,
			"`MEMORY` of a device, with TFLOP/s and GB/s if known: 24GiB:100:25; repeat for several")
		cmd.Flags().StringVar(&m.presets, "split-presets", "", "`FILE` with presets of splits; default: those of “weir model presets”")
		cmd.Flags().StringVar(&m.service, "service-type", "", "service `TYPE` whose preset split is used; default: by the architecture")
	}
	return cmd
}

func newModelPresetsCommand() *cobra.Command {
	return &cobra.Command{Use: "presets", Short: "Print the presets of splits that the program has", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(deployments.PresetsYAML)
			return err
		}}
}

func newModelShowCommand() *cobra.Command {
	var m modelCommand
	return m.add(&cobra.Command{Use: "show DIRECTORY", Short: "Show what a model consists of and the memory that it needs",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, report, err := m.read(args[0])
			if err != nil {
				return err
			}
			if m.output.Value == "json" {
				return writeJSON(cmd.OutOrStdout(), struct {
					Facts  models.ModelFacts  `json:"facts"`
					Memory models.ModelMemory `json:"memory"`
				}{report.Facts, report.Memory})
			}
			return printFacts(cmd.OutOrStdout(), report)
		}}, false)
}

func newModelPlanCommand() *cobra.Command {
	var m modelCommand
	return m.add(&cobra.Command{Use: "plan DIRECTORY --device MEMORY...", Short: "Plan a model on devices", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, report, err := m.plan(args[0])
			if err != nil {
				return err
			}
			if m.output.Value == "json" {
				err = writeJSON(cmd.OutOrStdout(), handlers.ModelReportOf(report))
			} else {
				err = printPlan(cmd.OutOrStdout(), report.Plan)
			}
			if err == nil && !report.Plan.Possible {
				err = errors.New("the model does not fit")
			}
			return err
		}}, true)
}

func newModelSplitCommand() *cobra.Command {
	var m modelCommand
	return m.add(&cobra.Command{Use: "split DIRECTORY OUT --device MEMORY...", Short: "Write the parts of a model to files",
		Long: `Plan a model on devices and write one safetensors file for each part, named by its content, and
parts.json to the directory OUT. Parts that are there already are not written again, so a
command that was interrupted can be repeated.`, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			model, report, err := m.plan(args[0])
			if err != nil {
				return err
			}
			if !report.Plan.Possible {
				return fmt.Errorf("the model does not fit: %s", report.Plan.Reasons[len(report.Plan.Reasons)-1])
			}
			return m.writeTo(cmd, args[1], func(out *os.Root) (split.Manifest, error) {
				return split.Split(cmd.Context(), os.DirFS(args[0]), out, model, report.Plan)
			})
		}}, true)
}

func newModelMergeCommand() *cobra.Command {
	return &cobra.Command{Use: "merge PARTS OUT", Short: "Merge the parts of a model into its files",
		Long: `Write the files of a model, with the bytes that they had, from the parts that “weir model split”
has written to the directory PARTS. The content of all parts is checked first.`, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			m := modelCommand{output: config.Choice{Value: "text"}}
			return m.writeTo(cmd, args[1], func(out *os.Root) (split.Manifest, error) {
				manifest, err := split.Merge(cmd.Context(), os.DirFS(args[0]), out)
				manifest.Parts = nil // what was written is the files
				return manifest, within(args[0], err)
			})
		}}
}

// read reads a model. Refusals of flags are errors of the command line.
func (m *modelCommand) read(dir string) (shard.Model, models.ModelReport, error) {
	var report models.ModelReport
	load, err := shard.CheckLoad(m.batch, m.context)
	if err != nil {
		return shard.Model{}, report, usageOf(err)
	}
	model, err := shard.Read(os.DirFS(dir))
	if err != nil {
		return model, report, publicOf(within(dir, err))
	}
	report.Facts, report.Memory = model.Facts, shard.Memory(model.Facts, load)
	return model, report, nil
}

// plan reads a model and plans it on the stated devices.
func (m *modelCommand) plan(dir string) (model shard.Model, report models.ModelReport, err error) {
	if len(m.devices) == 0 {
		return model, report, config.Usagef("--device is required")
	}
	if model, report, err = m.read(dir); err != nil {
		return model, report, err
	}
	if report.Devices, err = shard.ParseDevices(m.devices); err != nil {
		return model, report, usageOf(err)
	}
	presets, err := deployments.OpenPresets(m.presets, slog.New(slog.DiscardHandler))
	if err != nil {
		return model, report, err
	}
	report.Plan, err = shard.Plan(model.Facts, shard.Request{Load: shard.Load{Batch: m.batch, Context: m.context},
		ServiceType: m.service, Presets: presets.Current(), Devices: report.Devices})
	return model, report, usageOf(err)
}

// usageOf is the refusal of a flag.
func usageOf(err error) error {
	if e, ok := errors.AsType[*models.Error](err); ok && len(e.Fields) > 0 {
		return config.Usagef("--%s: %s", strings.ReplaceAll(e.Fields[0].Name, "_", "-"), e.Fields[0].Reason)
	}
	return err
}

// within names the whole path of a file that was looked for in a directory.
func within(dir string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", filepath.Join(dir, e.Path), e.Err)
	}
	return err
}

// publicOf is what an error says.
func publicOf(err error) error {
	if e, ok := errors.AsType[*models.Error](err); ok {
		return errors.New(e.Message.String())
	}
	return err
}

// writeTo opens the directory for what is written, and prints that.
func (m *modelCommand) writeTo(cmd *cobra.Command, dir string, write func(*os.Root) (split.Manifest, error)) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	out, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer out.Close()
	manifest, err := write(out)
	if err != nil {
		return publicOf(err)
	}
	if m.output.Value == "json" {
		return writeJSON(cmd.OutOrStdout(), writtenOf(manifest.Parts))
	}
	for _, p := range manifest.Parts {
		words := "unchanged"
		if p.Written {
			words = "written"
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s  %s  %s to %s  %s\n", p.File, models.FormatBytes(p.Size), p.First, p.Last, words)
	}
	if len(manifest.Parts) == 0 {
		for _, f := range manifest.Files {
			fmt.Fprintf(cmd.OutOrStdout(), "%s  %s\n", f.Name, models.FormatBytes(f.Size))
		}
	}
	return nil
}

// writtenPart is a part with whether it was written now.
type writtenPart struct {
	split.Part
	Written bool `json:"written"`
}

func writtenOf(parts []split.Part) (list []writtenPart) {
	for _, p := range parts {
		list = append(list, writtenPart{p, p.Written})
	}
	return list
}

// printFacts prints what a model consists of.
func printFacts(out io.Writer, r models.ModelReport) error {
	f, m := r.Facts, r.Memory
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "architecture\t%s\nparameters\t%d\nweights\t%s\ntensors\t%d\nfiles\t%d\n",
		f.Architecture, f.Parameters, models.FormatBytes(f.Bytes), f.Tensors, f.Files)
	fmt.Fprintf(w, "attention heads\t%d, for keys and values %d\nexperts\t%d\n", f.Heads, f.KVHeads, f.Experts)
	fmt.Fprintf(w, "memory\t%s for batch %d and context %d: weights %s, KV cache %s, activations %s\n",
		models.FormatBytes(m.Total), m.Batch, m.Context, models.FormatBytes(m.Weights),
		models.FormatBytes(m.KVCache), models.FormatBytes(m.Activations))
	if m.Partial {
		fmt.Fprintln(w, "\tconfig.json does not state hidden size and attention heads, so only the weights are counted")
	}
	fmt.Fprintln(w, "\nlayer\ttensors\tparameters\tsize")
	for _, l := range f.Layers {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", l.Name, l.Tensors, l.Parameters, models.FormatBytes(l.Bytes))
	}
	return w.Flush()
}

// printPlan prints why and how a model is placed.
func printPlan(out io.Writer, p models.ModelPlan) error {
	for _, reason := range p.Reasons {
		fmt.Fprintln(out, reason)
	}
	if !p.Possible {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\ndevice\tavailable\tfrom\tto\tweights\tKV cache\tactivations\ttotal\testimated ms")
	for _, part := range p.Parts {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.3g\n", part.Device.Name,
			models.FormatBytes(part.Device.MemoryBytes), part.First, part.Last, models.FormatBytes(part.Weights),
			models.FormatBytes(part.KVCache), models.FormatBytes(part.Activations), models.FormatBytes(part.Total), part.Seconds*1000)
	}
	return w.Flush()
}
