"""The English words by which subjects are told from what is said of them; tables, and nothing else."""

from __future__ import annotations

from csmd.believe.phrases import WEAK
from csmd.text import STOP_WORDS, TURNING_WORDS

#: Names with a capital inside that are one word all the same.
ONE_WORD = frozenset(
    "github gitlab javascript typescript postgresql mysql sqlite youtube macos ios graphql openai".split()
)
#: What stands before a noun, or before the adjectives before it.
DETERMINERS = frozenset(
    "the a an this that these those my our your its their each every any no some all both another same which existing "
    "current whole new old first second next last".split()
)
#: Verbs that work is told with; they break a phrase, and are a subject only within a name.
VERBS = frozenset(
    """add adds added adding remove removes removed removing fix fixes fixed fixing change changes changed changing update updates
    updated updating create creates created creating check checks checked checking call calls called calling return returns
    returned returning show shows showed shown showing contain contains containing include includes included including need needs
    needed want wants wanted make makes made making work works worked working keep keeps kept keeping set sets setting see sees
    seen look looks looking find finds found finding write writes wrote written writing read reads reading run runs ran running
    move moves moved moving happen happens happened start starts started starting stop stops stopped stopping handle handles
    handled handling implement implements implemented implementing ensure ensures ensuring allow allows allowed allowing mean
    means meant say says said ask asks asked tell tells told think know knows known go goes going went gone come comes coming came give gives
    gave given take takes took taken taking put try tries tried trying let lets support supports supported supporting require requires
    required expect expects expected match matches matched matching fail fails failed failing pass passes passed passing exist
    exists existing appear appears consider considering replace replaces replaced replacing rename renamed skip skips skipped
    avoid avoids prevent prevents preventing preserve preserves preserved follow follows following store stores stored storing
    save saves saved saving load loads loaded get gets getting trigger triggers triggered cause causes caused affect affects
    provide provides provided extract extracts extracted detect detects detected ignore ignores ignored merge merged use uses
    used using do does did done doing be is are was were has have had adjust adjusted improve explain review verify verified
    validate validates print prints printed become becomes became build builds built seem seems miss missed missing point points
    compare compares compared treat treated behave refer refers reuse install installed installs installing delete deletes
    deleted deleting push pushed pushes pushing pull pulled commit commits committed committing open opens opened close closed
    send sends sent generate generates generated rely relies represent clean cleans cleaned cleanup parse parses parsed parsing
    track tracks tracked tracking copy copies copied document documented documents describe described result results end ends
    ended begin begins began turn turns turned test tests tested testing log logs logged hang hangs link links linked wait
    waits attempt attempts reset resets resolve resolves resolved invoke invoked execute executes executed apply applies applied
    leave leaves left stay stays stayed staying remain remains remained remaining enable enables enabled enabling disable disables disabled disabling warn warns warned hit hits point points reference references referenced display displays displayed list lists listed""".split()
)
#: Of them those that are as often things: they break no phrase and are none alone.
ALSO_NOUNS = frozenset(
    """commit commits test tests log logs list document documents reference references point points result results link links
    reset push pull review merge check checks change changes fix update build install setting display track""".split()
)
ADVERBS = frozenset(
    """always often sometimes usually within without across regardless despite around anymore already still even currently previously directly
    properly explicitly automatically completely correctly instead together rather either neither whether though although
    else otherwise however therefore thus hence besides maybe perhaps really actually basically simply likely immediately
    silently separately today yesterday tomorrow recently later soon early back away along unless since yet etc via""".split()
)
#: What a phrase does not go across.
BREAKS = (STOP_WORDS | ADVERBS | TURNING_WORDS | (VERBS - ALSO_NOUNS) | frozenset(WEAK - {"work"})) - DETERMINERS
#: Words of every project: they make a subject only beside another.
GENERIC = (
    frozenset(
        """function method class file files code line lines test tests value values name names field fields type types string
        error errors warning warnings message messages case cases thing things way time user users data default option options command commands
        issue problem bug feature behavior behaviour state status result output input argument parameter variable flag package
        module import config configuration setting settings version directory folder path content text comment comments section
        example number id key list map object array script tool project repo repository branch commit commits change changes
        fix update log logs step part place side kind set item entry point reason approach implementation logic pattern check
        call return cli app api github git hub main non dir ref run running work added session agent prompt response request document documents
        reference references link links pull push review merge build install display track format info summary level root
        operation operations failure failures block blocks caller callers constant constants count date dates flow index note notes
        removal detection convention conventions url doc docs reader handler handlers environment position order limit support
        struct structure interface helper helpers body header parent child node element property attribute parameter params
        process service system level mode range size length amount total page view button request response event callback
        condition loop statement expression assertion check context scope detail details question answer comparison
        scenario workflow usage default defaults fallback edge normal manual auto automatic future past codebase regex
        current previous existing new old first second next last other same different single multiple correct wrong right
        full empty missing available specific general actual real local remote global external internal original final""".split()
    )
    | VERBS
)
#: What a subject neither begins nor ends with: it says which, how many or how, or is the rest of a verb.
GENERIC_HEADS = frozenset(
    """current previous existing new old first second next last other same different single multiple correct wrong right full
    empty missing available specific general actual real original final following above below several many few more less
    whole entire only also already still just even e.g i.e etc via per pr prs one two three four five lot lots bit way ways thing things case
    cases time times part kind reason example instead together currently previously directly properly explicitly automatically
    possible able sure true false null nil none ok yes no able unable clear good better best bad proper simple simply proper
    gone mark edit common staged short long non fix fixed change changed update updated added removed adding removing used using based""".split()
)
