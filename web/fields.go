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

// fields holds what the inputs are called. A name is looked up whole, then by
// what follows its last dot: the inputs of a quota and of a limit are described
// once.
var fields = map[string]field{
	"email":           {Label: models.Say("E-mail"), Type: "email", Autocomplete: "username", Required: true},
	"name":            {Label: models.Say("Name"), Required: true},
	"password":        {Label: models.Say("Password"), Type: "password", Autocomplete: "current-password", Required: true},
	"new_password":    {Label: models.Say("New password"), Hint: passwordHint, Type: "password", Autocomplete: "new-password", Required: true},
	"chosen_password": {Label: models.Say("Password"), Hint: passwordHint, Type: "password", Autocomplete: "new-password", Required: true},
	"password_again":  {Label: models.Say("The same password again"), Type: "password", Autocomplete: "new-password", Required: true},
	"current":         {Label: models.Say("Current password"), Type: "password", Autocomplete: "current-password", Required: true},
	"member_email":    {Label: models.Say("E-mail"), Hint: models.Say("Of somebody who has an account."), Type: "email", Autocomplete: "off", Required: true},
	"person_email":    {Label: models.Say("E-mail"), Type: "email", Autocomplete: "off", Required: true},
	"token_name":      {Label: models.Say("Name"), Hint: models.Say("What it is for."), Required: true},
	"lang":            {Label: models.Say("Language of the pages")},
	"description":     {Label: models.Say("Description"), Rows: 3},
	"starts_at":       {Label: models.Say("Starts on"), Hint: models.Say("The first day of use. Empty: today."), Type: "date"},
	"ends_at":         {Label: models.Say("Ends on"), Hint: models.Say("The first day without use. Empty: no end."), Type: "date"},
	"until":           {Label: models.Say("Participates until"), Hint: models.Say("The first day without access. Empty: as long as the project."), Type: "date"},
	"role_id":         {Label: models.Say("Role")},
	"to_member_id":    {Label: models.Say("Who gets it"), Hint: models.Say("A present member of the project.")},
	"joined_at":       {Label: models.Say("Joined on"), Hint: models.Say("Not later than today. Empty: today for a new member."), Type: "date"},
	"department_id":   {Label: models.Say("Department")},
	"csv":             {Label: models.Say("Table"), Hint: models.Say("The content of a CSV file, when none is chosen above."), Rows: 8, Mono: true},
	"permission":      {Label: models.Say("Permission")},

	"gpu_cores":             {Label: models.Say("GPU cores"), Hint: models.Say("100 cores are one whole GPU."), Inputmode: "numeric", Placeholder: "0"},
	"gpu_memory_mib":        {Label: models.Say("GPU memory"), Hint: models.Say("Such as 40 GiB."), Placeholder: "0"},
	"cpu_milli":             {Label: models.Say("CPU"), Hint: models.Say("Cores, such as 4 or 1.5."), Inputmode: "decimal", Placeholder: "0"},
	"memory_mib":            {Label: models.Say("Memory"), Hint: models.Say("Such as 16 GiB."), Placeholder: "0"},
	"storage_mib":           {Label: models.Say("Storage"), Hint: models.Say("Such as 1 TiB."), Placeholder: "0"},
	"launch.gpu_memory_mib": {Label: models.Say("Memory per GPU"), Hint: models.Say("Such as 40 GiB. Empty: in proportion to the cores.")},
	"launch.cpu_milli":      {Label: models.Say("CPU"), Hint: models.Say("Cores, such as 4 or 1.5."), Inputmode: "decimal"},
	"launch.memory_mib":     {Label: models.Say("Memory"), Hint: models.Say("Such as 16 GiB.")},
	"gpus":                  {Label: models.Say("GPUs"), Hint: models.Say("How many. 0: none."), Inputmode: "numeric"},
	"cores":                 {Label: models.Say("Cores per GPU"), Hint: models.Say("1 to 100; 100 is a whole GPU."), Inputmode: "numeric"},
	"gpu_model":             {Label: models.Say("GPU model"), Hint: models.Say("Empty: any.")},
	"shm_mib":               {Label: models.Say("Shared memory"), Hint: models.Say("Size of /dev/shm, such as 2 GiB. Counts as memory.")},
	"path":                  {Label: models.Say("Opens at"), Hint: models.Say("Page that opens first, such as /lab."), Mono: true},
	"env":                   {Label: models.Say("Environment variables"), Hint: models.Say("KEY=VALUE, one a line."), Rows: 3, Mono: true},

	"priority":       {Label: models.Say("Priority"), Hint: models.Say("In the queue: 1 to 100, the higher the earlier. Usual: 50."), Inputmode: "numeric", Placeholder: "50"},
	"sharing":        {Label: models.Say("Sharing")},
	"layout":         {Label: models.Say("MIG layout"), Hint: models.Say("With MIG: the profiles of the instances, one a line, such as 3g.40gb."), Rows: 3, Mono: true},
	"gpu_code":       {Label: models.Say("GPU code"), Hint: models.Say("16 letters and digits, as the agent shows it."), Required: true, Mono: true},
	"provider_name":  {Label: models.Say("Name"), Hint: models.Say("Empty: as the machine calls itself.")},
	"owner_id":       {Label: models.Say("Owner"), Hint: models.Say("Address of whose GPUs they are: who sets their terms, drains and recalls them. Empty: as it is.")},
	"new_owner":      {Label: models.Say("Owner"), Hint: models.Say("Address of whose GPUs they are: who sets their terms, drains and recalls them. Empty: whose they were; new ones are yours.")},
	"terms_cores":    {Label: models.Say("Cores per GPU"), Hint: models.Say("That are lent of each GPU. Empty: all 100."), Inputmode: "numeric", Placeholder: "100"},
	"devices":        {Label: models.Say("GPUs"), Hint: models.Say("None ticked: all.")},
	"projects":       {Label: models.Say("Projects"), Hint: models.Say("None ticked: all.")},
	"other_projects": {Label: models.Say("Other projects"), Hint: models.Say("Those that are not in the list, by their numbers: the 5 of /projects/5. Separated by commas.")},
	"hours":          {Label: models.Say("Hours")},
	"days":           {Label: models.Say("Days")},
	"from":           {Label: models.Say("From"), Type: "time"},
	"to":             {Label: models.Say("To"), Type: "time"},
	"time_zone":      {Label: models.Say("Time zone"), Hint: models.Say("Of the hours, such as Europe/Berlin. Empty: UTC.")},
	"notice_minutes": {Label: models.Say("Notice in minutes"), Hint: models.Say("That holders get before the hours end."), Inputmode: "numeric", Placeholder: "0"},
	"recall_notice":  {Label: models.Say("Notice in minutes"), Hint: models.Say("0: the shares end at once."), Inputmode: "numeric", Placeholder: "0"},
	"add":            {Label: models.Say("Machines to add"), Hint: models.Say("Such as h100:8 or h100:8x4 for four of them; several separated by commas."), Mono: true},
	"history_days":   {Label: models.Say("Days of the past"), Hint: models.Say("Empty: 30."), Inputmode: "numeric", Placeholder: "30"},
	"policy":         {Label: models.Say("Placement")},
	"reason":         {Label: models.Say("Reason"), Hint: models.Say("The holders read it.")},

	"join_name":       {Label: models.Say("Name of the project"), Hint: models.Say("Exactly as it is called."), Required: true},
	"role_mine":       {Label: models.Say("For me"), Hint: models.Say("Who asks gets the role once it is there.")},
	"mine":            {Label: models.Say("For me"), Hint: models.Say("Who asks gets the role once it is there.")},
	"request_reason":  {Label: models.Say("Reason"), Hint: models.Say("Who decides reads it."), Rows: 3, Required: true},
	"decision_reason": {Label: models.Say("Reason"), Hint: models.Say("Who asked reads it. Needed to refuse, and to promise more than the pool's capacity allows."), Rows: 3},
	"confirm_beyond":  {Label: models.Say("Promise it nevertheless"), Hint: models.Say("The audit keeps it with the reason.")},
	"confirm":         {Label: models.Say("Promise it nevertheless")},

	"project_id":       {Label: models.Say("Project")},
	"environment_id":   {Label: models.Say("Environment")},
	"when_short":       {Label: models.Say("When not all is free")},
	"workspace_name":   {Label: models.Say("Name"), Hint: models.Say("Empty: notebook.")},
	"wanted":           {Label: models.Say("Wanted versions"), Hint: models.Say("Such as python>=3.11, torch"), Mono: true},
	"language":         {Label: models.Say("Language"), Hint: models.Say("Such as Python."), Required: true},
	"language_version": {Label: models.Say("Language version"), Hint: models.Say("Such as 3.12."), Required: true},
	"versions":         {Label: models.Say("Frameworks and tools"), Hint: models.Say("Name and version, one a line, such as torch 2.9.0."), Rows: 5, Mono: true},
	"image":            {Label: models.Say("Image"), Hint: models.Say("Container image, used on a cluster."), Mono: true},
	"command":          {Label: models.Say("Command"), Hint: models.Say("Program and arguments, one a line, used on this machine."), Rows: 4, Mono: true},
	"default_path":     {Label: models.Say("Opens at"), Hint: models.Say("Page that opens first, such as /lab."), Mono: true},

	"auditor":  {Label: models.Say("Auditor"), Hint: models.Say("Sees everything on the platform and changes nothing. Opens no notebook.")},
	"admin":    {Label: models.Say("Platform administrator"), Hint: models.Say("Manages projects, people, environments and the pool.")},
	"disabled": {Label: models.Say("Disabled"), Hint: models.Say("Cannot sign in; sessions and tokens end at once.")},
	"lifetime": {Label: models.Say("Expires after")},
	"q":        {Label: models.Say("Name or e-mail"), Type: "search"},
	"mixed":    {Label: models.Say("Shared between projects"), Hint: models.Say("Fractions may go to different projects. They are not isolated from each other.")},
}

func fieldOf(name string) (field, bool) {
	if f, ok := fields[name]; ok {
		return f, true
	}
	f, ok := fields[name[strings.LastIndex(name, ".")+1:]]
	return f, ok
}

// fieldName is what an input is called; unknown ones by their own name.
func fieldName(ctx context.Context, name string) string {
	if f, ok := fieldOf(name); ok {
		return TT(ctx, f.Label)
	}
	return name
}

// inputID is the id of a field's input.
func inputID(name string) string { return "f-" + strings.ReplaceAll(name, ".", "-") }

// resourceFields are the inputs of a vector of resources.
func resourceFields(prefix string) []string {
	var names []string
	for _, a := range (models.Resources{}).Amounts() {
		names = append(names, prefix+"."+a.Name)
	}
	return names
}
