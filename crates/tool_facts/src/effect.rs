//! Effects of tools, and their roles in an attack.

/// Effect of a tool on the world, or of the world on its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Returns text that anyone may have written: pages, search results, public issues.
    PublicRead,
    /// Requests an address that the caller chooses, so its owner sees what is in it.
    AddressRequest,
    /// Returns what a fixed service answers.
    ServiceRead,
    /// Sends data to a fixed service, which may act on it.
    ServiceWrite,
    /// Returns content of files.
    FileRead,
    /// Changes or deletes files.
    FileWrite,
    /// Starts a program or runs a command.
    Process,
    /// Runs code.
    Code,
    /// Runs code in an interpreter that has neither files nor the network.
    ConfinedCode,
    /// Returns rows of a database.
    DatabaseRead,
    /// Changes a database.
    DatabaseWrite,
    /// Returns mails.
    MailRead,
    /// Sends mails.
    MailSend,
    /// Returns messages of a chat.
    MessageRead,
    /// Sends messages.
    MessageSend,
    /// Returns data of an account that is not public: calendars, documents, repositories.
    AccountRead,
    /// Changes data of an account.
    AccountWrite,
    /// Makes something visible to others: posts, issues, pull requests.
    Publish,
    /// Moves money, or orders.
    Payment,
    /// Returns what was kept from earlier conversations.
    MemoryRead,
    /// Keeps something for later conversations.
    MemoryWrite,
    /// Answers whoever wrote.
    Reply,
}

/// Role of an effect in an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Brings in text that an attacker may have written.
    Untrusted,
    /// Brings in data that is not for everyone.
    Private,
    /// Lets others see what it is given.
    Outward,
    /// Changes the world.
    Acts,
    /// Runs what it is given, with the rights of the process.
    Runs,
}

/// Names, effects and roles.
const EFFECTS: &[(&str, Effect, &[Role], &str)] = {
    use Effect::*;
    use Role::*;
    &[
        ("public-read", PublicRead, &[Untrusted], "reads text that anyone may have written"),
        ("address-request", AddressRequest, &[Outward], "requests an address that the model chooses"),
        ("service-read", ServiceRead, &[], "asks a service"),
        ("service-write", ServiceWrite, &[Acts], "sends to a service"),
        ("file-read", FileRead, &[Private], "reads files"),
        ("file-write", FileWrite, &[Acts], "changes files"),
        ("process", Process, &[Private, Outward, Acts, Runs], "runs commands"),
        ("code", Code, &[Private, Outward, Acts, Runs], "runs code"),
        ("confined-code", ConfinedCode, &[Acts, Runs], "runs code without files or network"),
        ("database-read", DatabaseRead, &[Private], "reads a database"),
        ("database-write", DatabaseWrite, &[Acts], "changes a database"),
        ("mail-read", MailRead, &[Untrusted, Private], "reads mail"),
        ("mail-send", MailSend, &[Outward, Acts], "sends mail"),
        ("message-read", MessageRead, &[Untrusted, Private], "reads messages"),
        ("message-send", MessageSend, &[Outward, Acts], "sends messages"),
        ("account-read", AccountRead, &[Private], "reads data of an account"),
        ("account-write", AccountWrite, &[Acts], "changes data of an account"),
        ("publish", Publish, &[Outward, Acts], "publishes"),
        ("payment", Payment, &[Acts], "moves money"),
        ("memory-read", MemoryRead, &[], "reads what was kept before"),
        ("memory-write", MemoryWrite, &[], "keeps something for later"),
        ("reply", Reply, &[Outward], "answers whoever wrote"),
    ]
};

impl Effect {
    /// All effects, in order.
    pub fn all() -> impl Iterator<Item = Effect> {
        EFFECTS.iter().map(|(_, effect, ..)| *effect)
    }

    /// Returns the roles of the effect in an attack.
    ///
    /// # Examples
    /// ```
    /// use tool_facts::{Effect, Role};
    /// assert_eq!(Effect::MailRead.roles(), [Role::Untrusted, Role::Private]);
    /// ```
    pub fn roles(self) -> &'static [Role] {
        self.row().2
    }

    /// Returns true if the effect has a role.
    pub fn has(self, role: Role) -> bool {
        self.roles().contains(&role)
    }

    /// Returns the name used in data and JSON: `public-read`.
    pub fn as_str(self) -> &'static str {
        self.row().0
    }

    /// Returns the effect as the predicate of a sentence: `reads files`.
    pub fn describe(self) -> &'static str {
        self.row().3
    }

    /// Returns the effect of a name.
    pub fn of_name(name: &str) -> Option<Effect> {
        EFFECTS.iter().find(|(n, ..)| *n == name).map(|(_, effect, ..)| *effect)
    }

    fn row(self) -> &'static (&'static str, Effect, &'static [Role], &'static str) {
        // INVARIANT: the table has a row for each variant, in their order (test below).
        &EFFECTS[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_each_effect_in_its_place() {
        for (i, (name, effect, ..)) in EFFECTS.iter().enumerate() {
            assert_eq!(*effect as usize, i);
            assert_eq!(Effect::of_name(name), Some(*effect));
        }
        assert_eq!(Effect::Reply as usize + 1, EFFECTS.len());
    }
}
