package web

import (
	"context"
	"strings"

	"weir/models"
)

// field describes an input once for all forms that have it.
type field struct {
	Label        models.Text
	Hint         models.Text
	Type         string // of the input; empty is text
	Autocomplete string
	Inputmode    string
	Placeholder  string
	Rows         int // a textarea of so many rows
	Required     bool
	Mono         bool
}

var passwordHint = models.Say("At least 10 characters. A few unrelated words are easy to remember.")

// fields describe the inputs. A name is looked up whole, then by the part after its
// last dot: the inputs of a quota and of a limit share their descriptions.
var fields = map[string]field{
	"email":       {Label: models.Say("Email"), Type: "email", Autocomplete: "username", Required: true},
	"name":        {Label: models.Say("Name"), Required: true},
	"person_name": {Label: models.Say("Full name"), Required: true},
	"person_time_zone": {Label: models.Say("Time zone"),
		Hint: models.Say("In which pages and emails show times, for example Europe/Berlin. Default: that of the browser; in emails UTC.")},
	"password": {Label: models.Say("Password"), Type: "password", Autocomplete: "current-password", Required: true},
	"new_password": {Label: models.Say("New password"),
		Hint: passwordHint, Type: "password", Autocomplete: "new-password", Required: true},
	"chosen_password": {Label: models.Say("Password"),
		Hint: passwordHint, Type: "password", Autocomplete: "new-password", Required: true},
	"password_again": {Label: models.Say("Confirm password"), Type: "password", Autocomplete: "new-password", Required: true},
	"current":        {Label: models.Say("Current password"), Type: "password", Autocomplete: "current-password", Required: true},
	"code": {Label: models.Say("Code"), Hint: models.Say("The 6 digits that the authenticator app shows."),
		Autocomplete: "one-time-code", Inputmode: "numeric", Required: true, Mono: true},
	"present_code": {Label: models.Say("Code"), Hint: models.Say("Of the present authenticator app, or a recovery code."),
		Autocomplete: "one-time-code", Required: true, Mono: true},
	"recovery_code": {Label: models.Say("Recovery code"), Hint: models.Say("One that you have not used."), Required: true, Mono: true},
	"passkey_name":  {Label: models.Say("Name"), Hint: models.Say("What you call it, such as the device that has it."), Required: true},
	"credential":    {Label: models.Say("Passkey")},
	"ceremony":      {Label: models.Say("Passkey")},
	"second_factor": {Label: models.Say("Second factor required for"), Hint: models.Say("Of the accounts with a password.")},
	"member_email": {Label: models.Say("Email"),
		Hint: models.Say("Of an existing account. Invite people who have none."), Type: "email", Autocomplete: "off", Required: true},
	"curator_email": {Label: models.Say("Person"),
		Hint: models.Say("Email address. The person can write in the directory from every project."), Type: "email", Autocomplete: "off"},
	"curator_project": {Label: models.Say("Or a project"),
		Hint: models.Say("Exact name. Its members can write in the directory from this project.")},
	"public_directory": {Label: models.Say("Directory")},
	"emails": {Label: models.Say("Email addresses"),
		Hint: models.Say("One per line, or separated by commas."), Rows: 4, Required: true},
	"service_account_name": {Label: models.Say("Name"),
		Hint: models.Say("Lower-case letters, digits and hyphens, for example nightly-build."), Required: true},
	"token_name":   {Label: models.Say("Name"), Hint: models.Say("What the token is used for."), Required: true},
	"scope_read":   {Label: models.Say("Read"), Hint: models.Say("View what you can view.")},
	"scope_launch": {Label: models.Say("Launch"), Hint: models.Say("Launch, open and stop workspaces. Includes Read.")},
	"scope_project": {Label: models.Say("Project"),
		Hint: models.Say("Change projects, roles, members, invitations and requests. Includes Read.")},
	"scope_admin": {Label: models.Say("Administration"),
		Hint: models.Say("Administer the platform, if you may, and your own account. Includes Project.")},
	"lang":        {Label: models.Say("Display language")},
	"description": {Label: models.Say("Description"), Rows: 3},
	"starts_at":   {Label: models.Say("Start date"), Hint: models.Say("First day of use. Default: today."), Type: "date"},
	"ends_at":     {Label: models.Say("End date"), Hint: models.Say("Last day of use. Default: no end date."), Type: "date"},
	"until": {Label: models.Say("Member until"),
		Hint: models.Say("Last day with access. Default: the end of the project."), Type: "date"},
	"role_id":      {Label: models.Say("Role")},
	"to_member_id": {Label: models.Say("Recipient"), Hint: models.Say("A current member of the project.")},
	"joined_at": {Label: models.Say("Join date"),
		Hint: models.Say("Today or earlier. Default for a new member: today."), Type: "date"},
	"department_id": {Label: models.Say("Department")},
	"csv": {Label: models.Say("CSV data"),
		Hint: models.Say("Paste CSV data here if no file is selected above."), Rows: 8, Mono: true},
	"ptx": {Label: models.Say("PTX"), Hint: models.Say("Paste PTX here if no file is selected above."), Rows: 16, Mono: true},
	"physical": {Label: models.Say("Physical barriers"),
		Hint: models.Say("Of a thread block, from 1 to 16."), Inputmode: "numeric", Required: true},
	"threads": {Label: models.Say("Threads of a block"), Inputmode: "numeric",
		Hint: models.Say("For kernels without .reqntid whose blocks have one dimension. Default: not known, and fewer barriers are reused.")},
	"graph": {Label: models.Say("Graph in YAML"), Hint: models.Say("Paste YAML here if no file is selected above."), Rows: 16, Mono: true},
	"run_id": {Label: models.Say("Measured times of run"), Inputmode: "numeric",
		Hint: models.Say("Number of a run of a task graph. Its times take the place of those in the graph. Default: none.")},
	"cpus": {Label: models.Say("CPUs of the machine"), Hint: models.Say("From 1 to 1024."), Inputmode: "numeric", Required: true},
	"utilization": {Label: models.Say("Utilization"), Inputmode: "numeric", Required: true,
		Hint: models.Say("Percent of the CPUs that others use.")},
	"second_threshold": {Label: models.Say("Second threshold"), Inputmode: "numeric",
		Hint: models.Say("In percent. From it on, branches share fewer CPUs. Default: 50.")},
	"first_threshold": {Label: models.Say("First threshold"), Inputmode: "numeric",
		Hint: models.Say("In percent. Above it, operators run one after another. Default: 70.")},
	"reduced_cpus": {Label: models.Say("CPUs between the thresholds"), Inputmode: "numeric",
		Hint: models.Say("In place of those of the machine. Default: three quarters.")},
	"serial_cpus": {Label: models.Say("CPUs above the first threshold"), Inputmode: "numeric", Hint: models.Say("Default: half.")},
	"batch":       {Label: models.Say("Batch"), Hint: models.Say("Sequences at once."), Inputmode: "numeric", Required: true},
	"context":     {Label: models.Say("Context"), Hint: models.Say("Tokens of a sequence."), Inputmode: "numeric", Required: true},
	"deploy.path": {Label: models.Say("Directory of the model"),
		Placeholder: "/notebook/1/project_model/llama", Required: true, Mono: true},
	"deploy.name": {Label: models.Say("Name"), Hint: models.Say("Default: that of the directory.")},
	"deploy.parts": {Label: models.Say("Parts"),
		Hint: models.Say("Each on a GPU of its own. Default: as few as possible."), Inputmode: "numeric"},
	"deploy.context": {Label: models.Say("Context"),
		Hint: models.Say("Tokens of a request and its completion, at most."), Inputmode: "numeric"},
	"deploy.batch": {Label: models.Say("Batch"), Hint: models.Say("Requests that are computed at once."), Inputmode: "numeric"},
	"deploy.cores": {Label: models.Say("GPU cores of each part"),
		Hint: models.Say("Default: 100, a whole GPU, or those of the reservation."), Inputmode: "numeric"},
	"deploy.idle_minutes": {Label: models.Say("Idle timeout"),
		Hint: models.Say("Minutes without requests after which its GPUs are released until the next one. Default: never."), Inputmode: "numeric"},
	"deploy.environment_id": {Label: models.Say("Environment"),
		Hint: models.Say("Those with PyTorch or NumPy, which the parts need.")},
	"service_type": {Label: models.Say("Service type"), Hint: models.Say("How the model is split if it does not fit on one GPU.")},
	"preset.service_type": {Label: models.Say("Service type"),
		Hint: models.Say("Name by which plans and deployments use it."), Required: true},
	"preset.architecture": {Label: models.Say("Architecture"), Hint: models.Say("As in config.json. Default: all models.")},
	"split":               {Label: models.Say("Split")},
	"combine": {Label: models.Say("Results of the parts"),
		Hint: models.Say("Deployments serve splits by layers whose results are passed on, and by heads or experts whose results are added. Others can only be planned.")},
	"cuts": {Label: models.Say("Cut before"), Placeholder: "model.layers.8, model.layers.16", Mono: true,
		Hint: models.Say("Names of layers, as the page of a model lists them. Default: models may be cut between all layers.")},
	"device": {Label: models.Say("Devices"), Placeholder: "24GiB, 24GiB",
		Hint: models.Say("Default: what is available in the pool. With speed in TFLOP/s and link in GB/s: 24GiB:100:25.")},
	"permission": {Label: models.Say("Permission")},

	"gpu_cores": {Label: models.Say("GPU cores"), Hint: models.Say("100 cores are one whole GPU."), Inputmode: "numeric"},
	"all_gpu_cores": {Label: models.Say("GPU cores"),
		Hint: models.Say("100 cores are one whole GPU. The rest of the quota is in proportion."), Inputmode: "numeric", Required: true},
	"invited_emails": {Label: models.Say("Invite"), Hint: models.Say("Email addresses, one per line. Optional."), Rows: 2},
	"members": {Label: models.Say("Members"),
		Hint: models.Say("You included. Each gets an equal part of the quota as the limit."), Inputmode: "numeric", Required: true},
	"gpu_memory_mib": {Label: models.Say("GPU memory"), Hint: models.Say("For example, 40 GiB.")},
	"cpu_milli": {Label: models.Say("CPU"),
		Hint: models.Say("In cores, for example 4 or 1.5; or unlimited."), Inputmode: "decimal"},
	"memory_mib":  {Label: models.Say("Memory"), Hint: models.Say("For example, 16 GiB; or unlimited.")},
	"storage_mib": {Label: models.Say("Storage"), Hint: models.Say("For example, 1 TiB; or unlimited.")},
	"launch.gpu_memory_mib": {Label: models.Say("Memory per GPU"),
		Hint: models.Say("For example, 40 GiB. Default: in proportion to the cores.")},
	"launch.cpu_milli":  {Label: models.Say("CPU"), Hint: models.Say("In cores, for example 4 or 1.5."), Inputmode: "decimal"},
	"launch.memory_mib": {Label: models.Say("Memory"), Hint: models.Say("For example, 16 GiB.")},
	"gpus":              {Label: models.Say("GPUs"), Hint: models.Say("Number of GPUs. 0 for none."), Inputmode: "numeric"},
	"cores":             {Label: models.Say("Cores per GPU"), Hint: models.Say("1 to 100. 100 is a whole GPU."), Inputmode: "numeric"},
	"gpu_model":         {Label: models.Say("GPU model"), Hint: models.Say("Default: any.")},
	"shm_mib": {Label: models.Say("Shared memory"),
		Hint: models.Say("Size of /dev/shm, for example 2 GiB. Counts toward memory.")},
	"idle_minutes": {Label: models.Say("Idle timeout"),
		Hint: models.Say("Minutes without work after which a workspace is stopped. 0 is never."), Inputmode: "numeric"},
	"gpu_idle_minutes": {Label: models.Say("GPU idle timeout"),
		Hint: models.Say("For workspaces with GPUs, which are then released. 0 is never."), Inputmode: "numeric"},
	"kernel_idle_minutes": {Label: models.Say("GPU kernel idle timeout"),
		Hint: models.Say("For GPU kernels of notebooks, which then release their GPU; the workspace goes on. 0 is never."), Inputmode: "numeric"},
	"path": {Label: models.Say("Start page"), Hint: models.Say("Page to open first. /lab needs JupyterLab in the environment."), Mono: true},
	"env":  {Label: models.Say("Environment variables"), Hint: models.Say("One KEY=VALUE per line."), Rows: 3, Mono: true},

	"accounting_group": {Label: models.Say("Group by")},
	"priced_model":     {Label: models.Say("GPU model")},
	"billing":          {Label: models.Say("Billing model"), Hint: models.Say("Reserved is for shares that are taken in a reservation; preemptible ones have a price of their own.")},
	"micros": {Label: models.Say("Price of a GPU core hour"),
		Hint: models.Say("For example, 0.012. A whole GPU is 100 cores."), Inputmode: "decimal", Required: true},
	"currency": {Label: models.Say("Currency"), Hint: models.Say("The same in all prices, for example EUR."), Required: true},
	"valid_from": {Label: models.Say("Valid from"),
		Hint: models.Say("In your time zone; without scripts in UTC. Default: now."), Type: "datetime-local"},

	"duration_minutes": {Label: models.Say("Duration"), Hint: models.Say("In minutes."), Inputmode: "numeric", Required: true},
	"reserve_gpus":     {Label: models.Say("GPUs"), Hint: models.Say("All of one machine."), Inputmode: "numeric", Required: true},
	"reserve_from": {Label: models.Say("Earliest start"),
		Hint: models.Say("In your time zone; without scripts in UTC. Default: now."), Type: "datetime-local"},
	"change_starts_at": {Label: models.Say("New start"),
		Hint: models.Say("In your time zone; without scripts in UTC. Default: unchanged."), Type: "datetime-local"},
	"change_ends_at":    {Label: models.Say("New end"), Hint: models.Say("Default: as long as before."), Type: "datetime-local"},
	"reserve_until":     {Label: models.Say("Latest end"), Hint: models.Say("Default: a week later."), Type: "datetime-local"},
	"calendar_reserved": {Label: models.Say("Show")},
	"accept_part":       {Label: models.Say("A part now and the rest later is acceptable")},
	"accept_later":      {Label: models.Say("A later start is acceptable")},
	"reservation_id":    {Label: models.Say("Reservation"), Hint: models.Say("It runs in your reservation, and ends with it.")},
	"class":             {Label: models.Say("Priority class"), Hint: models.Say("High is for those who decide requests in the project.")},
	"qos": {Label: models.Say("QoS level"),
		Hint: models.Say("What a request with a higher score may change. Guaranteed is for those who decide requests in the project.")},
	"task_type": {Label: models.Say("Task type")},
	"client_zone": {Label: models.Say("Client zone"),
		Hint: models.Say("GPUs of the machines with the lowest latency to it are preferred.")},

	"outgoing.access": {Label: models.Say("Allowed"), Hint: models.Say("For none and for listed hosts, DNS is closed too: only listed names are known.")},
	"outgoing.hosts": {Label: models.Say("Hosts"),
		Hint: models.Say("One per line, for listed hosts: a name, an IPv4 address, or a network such as 192.0.2.0/24. Names are looked up when something starts."), Rows: 3, Mono: true},
	"priority": {Label: models.Say("Priority"),
		Hint: models.Say("1 to 100. Higher values go first in the queue. Default: 50."), Inputmode: "numeric", Placeholder: "50"},
	"sharing": {Label: models.Say("Sharing mode")},
	"layout": {Label: models.Say("MIG layout"),
		Hint: models.Say("For MIG: instance profiles, one per line, for example 3g.40gb."), Rows: 3, Mono: true},
	"gpu_code": {Label: models.Say("GPU code"),
		Hint: models.Say("16 letters and digits, as shown by the agent."), Required: true, Mono: true},
	"provider_name": {Label: models.Say("Name"), Hint: models.Say("Default: the machine's hostname.")},
	"owner_id": {Label: models.Say("Owner"),
		Hint: models.Say("Email address of the GPUs' owner, who sets their terms, drains and recalls them. Default: unchanged.")},
	"new_owner": {Label: models.Say("Owner"),
		Hint: models.Say("Email address of the GPUs' owner, who sets their terms, drains and recalls them. Default: the previous owner, or you for new GPUs.")},
	"terms_cores": {Label: models.Say("Cores per GPU"),
		Hint: models.Say("Cores lent from each GPU. Default: all 100."), Inputmode: "numeric", Placeholder: "100"},
	"devices":  {Label: models.Say("GPUs"), Hint: models.Say("If none are selected, all are included.")},
	"projects": {Label: models.Say("Projects"), Hint: models.Say("If none are selected, all are included.")},
	"other_projects": {Label: models.Say("Other projects"),
		Hint: models.Say("IDs of projects that are not in the list, separated by commas. The ID is the 5 in /projects/5.")},
	"hours":     {Label: models.Say("Hours")},
	"days":      {Label: models.Say("Days")},
	"from":      {Label: models.Say("From"), Type: "time"},
	"to":        {Label: models.Say("To"), Type: "time"},
	"time_zone": {Label: models.Say("Time zone"), Hint: models.Say("Time zone of the hours, for example Europe/Berlin. Default: UTC.")},
	"grace_minutes": {Label: models.Say("Grace period in minutes"),
		Hint: models.Say("How long before the hours end users are notified."), Inputmode: "numeric", Placeholder: "0"},
	"recall_grace": {Label: models.Say("Grace period in minutes"),
		Hint: models.Say("0 ends the shares immediately."), Inputmode: "numeric", Placeholder: "0"},
	"add": {Label: models.Say("Machines to add"),
		Hint: models.Say("For example, h100:8, or h100:8x4 for four machines. Separate several with commas."), Mono: true},
	"history_days": {Label: models.Say("Days of history"), Hint: models.Say("Default: 30."), Inputmode: "numeric", Placeholder: "30"},
	"policy":       {Label: models.Say("Placement policy")},
	"reason":       {Label: models.Say("Reason"), Hint: models.Say("Shown to the users of the shares.")},

	"join_name": {Label: models.Say("Project name"), Hint: models.Say("The exact project name."), Required: true},
	"assign_to_requester": {Label: models.Say("Assign role to requester"),
		Hint: models.Say("The requester gets the role when it is created.")},
	"request_reason": {Label: models.Say("Reason"), Hint: models.Say("Shown to the approver."), Rows: 3, Required: true},
	"decision_reason": {Label: models.Say("Reason"),
		Hint: models.Say("Shown to the requester. Required to refuse, or to allocate more than the pool's capacity allows."), Rows: 3},
	"confirm_reason": {Label: models.Say("Reason"), Rows: 2},
	"confirm_beyond": {Label: models.Say("Allocate anyway"), Hint: models.Say("Recorded in the audit log with the reason.")},
	"confirm":        {Label: models.Say("Allocate anyway")},

	"project_id":          {Label: models.Say("Project")},
	"environment_id":      {Label: models.Say("Environment")},
	"when_insufficient":   {Label: models.Say("If not all cores are available")},
	"model_path":          {Label: models.Say("Model")},
	"workspace_name":      {Label: models.Say("Name"), Hint: models.Say("Default: notebook.")},
	"version_constraints": {Label: models.Say("Version constraints"), Hint: models.Say("For example, python>=3.11, torch"), Mono: true},
	"language":            {Label: models.Say("Language"), Hint: models.Say("For example, Python."), Required: true},
	"language_version":    {Label: models.Say("Language version"), Hint: models.Say("For example, 3.12."), Required: true},
	"versions": {Label: models.Say("Frameworks and tools"),
		Hint: models.Say("One name and version per line, for example torch 2.9.0."), Rows: 5, Mono: true},
	"image": {Label: models.Say("Image"), Hint: models.Say("Container image, used on a cluster."), Mono: true},
	"command": {Label: models.Say("Command"),
		Hint: models.Say("Program, by its absolute path, and arguments, one per line. On a cluster, a program of the image."), Rows: 4, Mono: true,
		Required: true},
	"run_directory": {Label: models.Say("Directory"), Placeholder: "/home/jovyan/project", Mono: true,
		Hint: models.Say("In which the command begins, as the environment names it. Default: the home directory.")},
	"run_command": {Label: models.Say("Command"),
		Hint: models.Say("Program and arguments, quoted as in a shell. For variables, pipes and several commands: sh -c '…'."),
		Rows: 2, Mono: true, Required: true},
	"workspace_id": {Label: models.Say("Workspace"),
		Hint: models.Say("The run has its project, environment and variables. None: the environment that matches best.")},
	"time_limit_minutes": {Label: models.Say("Time limit"),
		Hint: models.Say("Minutes after which the run is ended. Default: no limit."), Inputmode: "numeric"},
	"default_path": {Label: models.Say("Start page"), Hint: models.Say("Page to open first. /lab needs JupyterLab in the environment."), Mono: true},

	"manual_updates": {Label: models.Say("Manual updates"),
		Hint: models.Say("Deploy files that change on request only. Otherwise they take the place of this version when they serve.")},
	"update_strategy": {Label: models.Say("Update strategy"),
		Hint: models.Say("Rolling needs resources for both for a while. With recreate, requests fail until the update serves.")},
	"no_notebook": {Label: models.Say("No notebook server"), Hint: models.Say("For runs and deployments, not for workspaces.")},

	"subject_id": {Label: models.Say("For")},
	"access":     {Label: models.Say("Access level")},
	"download":   {Label: models.Say("Download")},
	"directory":  {Label: models.Say("New directory")},
	"file_name":  {Label: models.Say("Name")},
	"to_directory": {Label: models.Say("To directory"),
		Hint: models.Say("Path of a directory that exists, for example /notebook/5/project_model."), Required: true, Mono: true},

	"auditor": {Label: models.Say("Auditor"),
		Hint: models.Say("Can view everything on the platform, but cannot make changes or open notebooks.")},
	"admin":    {Label: models.Say("Platform administrator"), Hint: models.Say("Manages projects, people, environments and the pool.")},
	"disabled": {Label: models.Say("Disabled"), Hint: models.Say("Cannot sign in. Sessions and tokens are revoked immediately.")},
	"email_confirmed": {Label: models.Say("Address confirmed"),
		Hint: models.Say("You know that the email address is this person's. It cannot be withdrawn.")},
	"lifetime": {Label: models.Say("Expiration")},
	"q":        {Label: models.Say("Name or email"), Type: "search"},
	"url": {Label: models.Say("Address"),
		Hint: models.Say("URL that receives the messages. Must start with https://."), Type: "url", Required: true, Mono: true},
	"url_private": {Label: models.Say("Address"), Hint: models.Say("URL that receives the messages. Can be in a private network."),
		Type: "url", Required: true, Mono: true},
	"events": {Label: models.Say("Events"),
		Hint: models.Say("Select none to receive all events.")},
	"enabled": {Label: models.Say("Enabled"), Hint: models.Say("Queued messages wait until the webhook is enabled again.")},
	"by_mail": {Label: models.Say("Email notifications"), Hint: models.Say("Notifications are also sent to your email address.")},
	"mixed": {Label: models.Say("Shared between projects"),
		Hint: models.Say("Different projects can use parts of the GPU. They are not isolated from each other.")},
}

func fieldOf(name string) (field, bool) {
	name = listName(name)
	if f, ok := fields[name]; ok {
		return f, true
	}
	f, ok := fields[name[strings.LastIndex(name, ".")+1:]]
	return f, ok
}

// fieldName is the label of an input; by default its name.
func fieldName(ctx context.Context, name string) string {
	if f, ok := fieldOf(name); ok {
		return TT(ctx, f.Label)
	}
	return name
}

// inputID is the id of a field's input.
func inputID(name string) string {
	return "f-" + strings.ReplaceAll(listName(name), ".", "-")
}

// listName is the name of the list of an item such as emails[2]; other names are
// unchanged.
func listName(name string) string {
	if at := strings.LastIndexByte(name, '['); at > 0 && strings.HasSuffix(name, "]") {
		return name[:at]
	}
	return name
}

// resourceFields are the inputs of a vector of resources.
func resourceFields(prefix string) []string {
	var names []string
	for _, a := range (models.Resources{}).Amounts() {
		names = append(names, prefix+"."+a.Name)
	}
	return names
}
